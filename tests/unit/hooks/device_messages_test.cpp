#include "hooks/inprocess/events/device_messages.h"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>

namespace devsan::hooks {

// Makes a failed comparison readable.
std::ostream& operator<<(std::ostream& out, DeviceComplaint complaint) {
  switch (complaint) {
    case DeviceComplaint::none:
      return out << "none";
    case DeviceComplaint::possible:
      return out << "possible";
    case DeviceComplaint::certain:
      return out << "certain";
  }
  return out;
}

namespace {

TEST_CASE("a lack of memory is told from other failures of a device") {
  CHECK(is_out_of_memory("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB"));
  CHECK(
      is_out_of_memory("[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you "
                       "tried to allocate 1152921504606846976 bytes. Error code 12 (Cannot allocate memory)"));
  CHECK(!is_out_of_memory("CUDA error: device-side assert triggered"));
  CHECK(!is_out_of_memory("Expected all tensors to be on the same device"));
}

TEST_CASE("PyTorch's own device checks are certain complaints") {
  const auto message = GENERATE(
      "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
      "Expected all tensors to be on the same device, but got mat2 is on cpu, different from other tensors on cuda:0 "
      "(when checking argument in method wrapper_CUDA_mm)",
      "indices should be either on cpu or on the same device as the indexed tensor (cpu)",
      "Expected a 'cuda' device type for generator but found 'cpu'",
      "Tensor on device cpu is not on the expected device meta!",
      "Unhandled FakeTensor Device Propagation for aten.add.Tensor, found two different devices cuda:0, cpu",
      "Input and hidden tensors are not at the same device, found input tensor at cuda:0 and hidden tensor at cpu",
      "Expected tensor for argument #1 'input' to have the same device as tensor for argument #2 'weight'; but device "
      "0 "
      "does not equal 1 (while checking arguments for cudnn_convolution)",
      "index_copy_(): self, index and source expected to be in the same device, but got (self) cuda:0, (index) cpu, "
      "and "
      "(source) cuda:0",
      "masked_fill_: Expected inputs to be on same device",
      "'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor",
      "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on cuda:0",
      "torch.cat(): all input tensors must be on the same device. Received cuda:0 and cpu",
      "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
      "attempting to assign a gradient with device type 'cuda' to a tensor with device type 'cpu'. Please ensure that "
      "the "
      "gradient and the tensor are on the same device",
      "Function MulBackward0 returned an invalid gradient at index 0 - expected device cpu but got cuda:0",
      "Expected condition, x and y to be on the same device, but condition is on cpu and x and y are on cuda:0 and "
      "cuda:0 respectively");
  CAPTURE(message);
  CHECK(device_complaint(message) == DeviceComplaint::certain);
}

TEST_CASE("messages that may come from other checks are possible complaints only") {
  const auto message = GENERATE(
      "Input type (CUDAFloatType) and weight type (CPUFloatType) should be the same",
      "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same or input should be a "
      "MKLDNN tensor and weight is a dense tensor",
      "Expected object of device type cuda but got device type cpu for argument #2 'mat2' in call to _th_mm",
      "Tensor for argument #2 'weight' is on CPU, but expected it to be on GPU (while checking arguments for "
      "cudnn_batch_norm)",
      "sspaddmm: expected 'mat1' to be a CPU tensor, but got a CUDA tensor",
      "Could not run 'aten::_foo' with arguments from the 'CPU' backend.");
  CAPTURE(message);
  CHECK(device_complaint(message) == DeviceComplaint::possible);
}

TEST_CASE("failures of the device itself or of its memory are no complaint about operands") {
  const auto message = GENERATE(
      "CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously reported at some other API "
      "call",
      "CUDA error: invalid device ordinal", "CUDA error: an illegal memory access was encountered",
      "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 139.00 GiB",
      "[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate "
      "4000000000000 bytes. Error code 12 (Cannot allocate memory), out of memory",
      "Invalid device string: 'cudda'");
  CAPTURE(message);
  CHECK(device_complaint(message) == DeviceComplaint::none);
}

TEST_CASE("errors about other things are no complaint") {
  const auto message =
      GENERATE("", "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)",
               "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 0",
               "index 5 is out of bounds for dimension 0 with size 3", "expected scalar type Float but found Half",
               "a leaf Variable that requires grad is being used in an in-place operation.",
               "result type Float can't be cast to the desired output type Long");
  CAPTURE(message);
  CHECK(device_complaint(message) == DeviceComplaint::none);
}

std::string as_python_says(std::string_view message, std::size_t room = 256) {
  std::string buffer(room, '?');
  return std::string(python_wording(message, buffer.data(), room));
}

TEST_CASE("tensor types are written as Python shows them") {
  CHECK(as_python_says("Input type (CUDAFloatType) and weight type (CPUHalfType) should be the same") ==
        "Input type (torch.cuda.FloatTensor) and weight type (torch.HalfTensor) should be the same");
  CHECK(as_python_says("SparseCUDADoubleType, SparseCPULongType") ==
        "torch.cuda.sparse.DoubleTensor, torch.sparse.LongTensor");
}

TEST_CASE("a message ends for Python where a NUL stands in it") {
  using namespace std::string_view_literals;
  CHECK(as_python_says("but device \x01 does not equal \0 (while checking)"sv) == "but device \x01 does not equal ");
}

TEST_CASE("words that only begin like a tensor type stay as they are") {
  for (const std::string text : {"CUDA", "CPU", "CPUBFloat16Type", "CUDAFloat", "SparseCPU backend", "CUDA error"}) {
    CHECK(as_python_says(text) == text);
  }
}

TEST_CASE("a message longer than the buffer is cut at its end") {
  CHECK(as_python_says("CUDAFloatType", 8) == "torch.cu");
  CHECK(as_python_says("no types at all", 4) == "no t");
  CHECK(as_python_says("anything", 0).empty());
}

}  // namespace
}  // namespace devsan::hooks
