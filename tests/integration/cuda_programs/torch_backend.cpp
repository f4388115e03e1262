// Tensors on "cuda" for a torch without CUDA. As libtorch_cuda does, it calls the CUDA runtime, here a fake one, for
// copies, streams and events. It computes in host memory, and gives CUDA addresses that stand for that memory. It has
// no part of devsan in it: to devsan it is a torch that calls CUDA, as on a real device.
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <cstring>
#include <vector>

extern "C" {
using Stream = std::uint64_t;
int cudaMalloc(void** out, std::size_t bytes);
int cudaHostAlloc(void** out, std::size_t bytes, unsigned flags);
int cudaMemcpyAsync(void* target, const void* source, std::size_t bytes, int kind, Stream stream);
int cudaDeviceSynchronize();
int cudaStreamCreateWithPriority(Stream* out, unsigned flags, int priority);
int cudaStreamSynchronize(Stream stream);
int cudaStreamWaitEvent(Stream stream, void* event, unsigned flags);
int cudaStreamBeginCapture(Stream stream, int mode);
int cudaStreamEndCapture(Stream stream, void** graph);
int cudaEventRecord(void* event, Stream stream);
int cudaEventSynchronize(void* event);
int cudaEventQuery(void* event);
void use_device(int device);
}

namespace {

constexpr int kToDevice = 1;
constexpr int kToHost = 2;
const c10::Device kDevice(c10::DeviceType::CUDA, 0);

thread_local c10::StreamId t_stream = 0;
std::vector<Stream> g_streams = {0};  // by PyTorch's number

Stream current() {
  return g_streams[static_cast<std::size_t>(t_stream)];
}

// ---- memory: the host's, and an address of the device that stands for it

struct Block {
  void* host;
  void* device;
};

// Addresses of the device are kept, as PyTorch's caching allocator keeps them: to free one waits, and ends a capture.
void free_block(void* data) {
  auto* const block = static_cast<Block*>(data);
  std::free(block->host);
  delete block;
}

struct DeviceMemory final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    auto* const block = new Block{std::calloc(bytes + 1, 1), nullptr};
    cudaMalloc(&block->device, bytes);
    return {block->host, block, &free_block, kDevice};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* target, const void* source, std::size_t bytes) const override {
    std::memcpy(target, source, bytes);
  }
} g_memory;

void* device_address(const at::Tensor& tensor) {
  return static_cast<Block*>(tensor.storage().data_ptr().get_context())->device;
}

// ---- devices and streams

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::DeviceType::CUDA; }
  c10::Device exchangeDevice(c10::Device) const override { return kDevice; }
  c10::Device getDevice() const override { return kDevice; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  c10::Stream getStream(c10::Device) const override { return stream(t_stream); }
  c10::Stream exchangeStream(c10::Stream next) const override { return stream(std::exchange(t_stream, next.id())); }
  void* getStreamNativeHandle(const c10::Stream which) const override {
    return reinterpret_cast<void*>(g_streams[static_cast<std::size_t>(which.id())]);
  }

 private:
  static c10::Stream stream(c10::StreamId id) { return c10::Stream(c10::Stream::UNSAFE, kDevice, id); }
};
C10_REGISTER_GUARD_IMPL(CUDA, Guard)

// ---- operators

at::Tensor empty(c10::IntArrayRef sizes, std::optional<c10::ScalarType> type, std::optional<c10::Layout>,
                 std::optional<c10::Device>, std::optional<bool>, std::optional<c10::MemoryFormat>) {
  constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::CUDA);
  return at::detail::empty_generic(sizes, &g_memory, kKeys, type.value_or(c10::ScalarType::Float), std::nullopt);
}

at::Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides, std::optional<c10::ScalarType> type,
                         std::optional<c10::Layout>, std::optional<c10::Device>, std::optional<bool>) {
  constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::CUDA);
  return at::detail::empty_strided_generic(sizes, strides, &g_memory, kKeys, type.value_or(c10::ScalarType::Float));
}

at::Tensor& copy(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  const std::size_t bytes = self.nbytes();
  std::memcpy(self.mutable_data_ptr(), source.const_data_ptr(), bytes);
  const bool to_device = self.is_cuda();
  if (to_device && source.is_cuda()) return self;
  void* const to = to_device ? device_address(self) : self.mutable_data_ptr();
  const void* const from = to_device ? source.const_data_ptr() : device_address(source);
  cudaMemcpyAsync(to, from, bytes, to_device ? kToDevice : kToHost, current());
  if (!non_blocking) cudaStreamSynchronize(current());
  return self;
}

at::Scalar local_scalar(const at::Tensor& self) {
  float value = 0;
  cudaMemcpyAsync(&value, device_address(self), sizeof(value), kToHost, current());
  cudaStreamSynchronize(current());
  return *static_cast<const float*>(self.const_data_ptr());
}

at::Tensor on_host(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cuda()) return tensor;
  return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(), tensor.options().device(c10::kCPU));
}

// Everything else: the CPU's operator, on the same memory.
void compute(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const std::size_t first = stack->size() - schema.arguments().size();
  const std::vector<c10::IValue> given(stack->begin() + static_cast<std::ptrdiff_t>(first), stack->end());
  for (std::size_t i = first; i < stack->size(); ++i) {
    if ((*stack)[i].isTensor()) (*stack)[i] = on_host((*stack)[i].toTensor());
  }
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  if (schema.returns().size() != 1 || !stack->back().isTensor()) return;
  if (schema.returns()[0].alias_info() != nullptr) {
    stack->back() = given[0];
    return;
  }
  const at::Tensor result = stack->back().toTensor().contiguous();
  const at::Tensor moved = at::empty(result.sizes(), result.options().device(kDevice));
  std::memcpy(moved.mutable_data_ptr(), result.const_data_ptr(), result.nbytes());
  stack->back() = moved;
}

at::Tensor view(const at::Tensor& self, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                std::optional<std::int64_t> offset) {
  auto result = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(self.storage()),
                                                         self.key_set(), self.dtype());
  result.unsafeGetTensorImpl()->set_storage_offset(offset.value_or(self.storage_offset()));
  result.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return result;
}

TORCH_LIBRARY_IMPL(_, CUDA, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&compute>());
}
TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("copy_", &copy);
  library.impl("_local_scalar_dense", &local_scalar);
  library.impl("as_strided", &view);
}

}  // namespace

// ---- what torch.cuda would bring: called by the program through ctypes, without an operator around it

extern "C" {
void start_backend() {
  c10::SetAllocator(c10::DeviceType::CUDA, &g_memory, 1);
  use_device(0);
}
std::int64_t new_stream() {
  Stream stream = 0;
  cudaStreamCreateWithPriority(&stream, 1, 0);  // cudaStreamNonBlocking, as c10 makes its own
  g_streams.push_back(stream);
  return static_cast<std::int64_t>(g_streams.size()) - 1;
}
void set_stream(std::int64_t id) {
  t_stream = id;
}
void* new_pinned(std::size_t bytes) {
  void* memory = nullptr;
  cudaHostAlloc(&memory, bytes, 0);
  return memory;
}
void begin_capture(std::int64_t id) {
  cudaStreamBeginCapture(g_streams[static_cast<std::size_t>(id)], 0);  // cudaStreamCaptureModeGlobal
}
bool end_capture(std::int64_t id) {
  void* graph = nullptr;
  return cudaStreamEndCapture(g_streams[static_cast<std::size_t>(id)], &graph) == 0 && graph != nullptr;
}
void record(void* event, std::int64_t id) {
  cudaEventRecord(event, g_streams[static_cast<std::size_t>(id)]);
}
void wait_event(std::int64_t id, void* event) {
  cudaStreamWaitEvent(g_streams[static_cast<std::size_t>(id)], event, 0);
}
void synchronize_event(void* event) {
  cudaEventSynchronize(event);
}
bool query(void* event) {
  return cudaEventQuery(event) == 0;
}
void synchronize() {
  cudaDeviceSynchronize();
}
}
