#include "hooks/inprocess/events/device_messages.h"

#include "trace/odd_operand.h"

namespace devsan::hooks {

namespace {

// Phrases of PyTorch's own checks: c10::impl::common_device_check_failure, TensorIterator, index, cat and stack,
// embedding, convolution, set_(), generators (ATen/core/Generator.h), autograd's validate_outputs, cuDNN's and rnn's
// checks, torch/_prims_common and FakeTensor; of process groups; and of torch's Python bindings: Tensor.numpy() and
// Tensor.grad.
constexpr std::string_view kCertain[] = {
    "on the same device",
    "on same device",
    "in the same device",
    "have the same device",
    "have same device type",
    "at least two devices",
    "should be either on cpu or on the same device",
    "different from other tensors on",
    "device type for generator",
    "is not on the expected device",
    "are not at the same device",
    "on different devices",
    "must be on the current device",
    "expected device",
    "two different devices",
    "storage of a tensor on device",
    trace::kGroupRefused,
    trace::kNumpyRefused,
    trace::kPinningRefused,
    "attempting to assign a gradient with device type",
    "attempting to assign a gradient located on device",
};

constexpr std::string_view kPossible[] = {
    "Expected object of device type",
    "torch.cuda.",
    "CUDA",
    "device",
    "backend",
    "to be on CPU",
    "to be on cpu",
    "to be on GPU",
    "CPU tensor",
    "cpu tensor",
};

// Failures of the device itself, or of its memory: the same words, another matter.
constexpr std::string_view kUnrelated[] = {"CUDA error", "out of memory", "invalid device ordinal", "Invalid device",
                                           "device-side assert"};

template <std::size_t N>
bool contains_any(std::string_view message, const std::string_view (&phrases)[N]) noexcept {
  for (const std::string_view phrase : phrases) {
    if (message.find(phrase) != message.npos) return true;
  }
  return false;
}

struct Prefix {
  std::string_view aten;
  std::string_view python;
};
constexpr Prefix kTypePrefixes[] = {
    {"SparseCUDA", "torch.cuda.sparse."}, {"SparseCPU", "torch.sparse."}, {"CUDA", "torch.cuda."}, {"CPU", "torch."}};
// Those that torch::processErrorMsg knows.
constexpr std::string_view kScalars[] = {"Byte", "Char", "Double", "Float", "Int", "Long", "Short", "Half"};

class Writer {
 public:
  Writer(char* buffer, std::size_t size) noexcept : buffer_(buffer), size_(size) {}
  void add(std::string_view text) noexcept { used_ += text.copy(buffer_ + used_, size_ - used_); }
  std::string_view text() const noexcept { return {buffer_, used_}; }

 private:
  char* buffer_;
  std::size_t size_;
  std::size_t used_ = 0;
};

// How much of the start of `message` is the name of a tensor type; writes it as Python says it. 0 where it is none.
std::size_t take_type_name(std::string_view message, Writer& out) noexcept {
  for (const Prefix& prefix : kTypePrefixes) {
    if (!message.starts_with(prefix.aten)) continue;
    const std::string_view rest = message.substr(prefix.aten.size());
    for (const std::string_view scalar : kScalars) {
      if (!rest.starts_with(scalar) || !rest.substr(scalar.size()).starts_with("Type")) continue;
      out.add(prefix.python);
      out.add(scalar);
      out.add("Tensor");
      return prefix.aten.size() + scalar.size() + std::string_view("Type").size();
    }
  }
  return 0;
}

}  // namespace

std::string_view python_wording(std::string_view message, char* buffer, std::size_t buffer_size) noexcept {
  Writer out(buffer, buffer_size);
  message = message.substr(0, message.find('\0'));
  while (!message.empty()) {
    std::size_t taken = take_type_name(message, out);
    if (taken == 0) out.add(message.substr(0, taken = 1));
    message.remove_prefix(taken);
  }
  return out.text();
}

bool is_out_of_memory(std::string_view message) noexcept {
  return message.find("out of memory. Tried to allocate") != message.npos ||
         message.find("DefaultCPUAllocator: can't allocate memory") != message.npos;
}

DeviceComplaint device_complaint(std::string_view message) noexcept {
  if (contains_any(message, kUnrelated)) return DeviceComplaint::none;
  if (contains_any(message, kCertain) || trace::wants_host(message)) return DeviceComplaint::certain;
  return contains_any(message, kPossible) ? DeviceComplaint::possible : DeviceComplaint::none;
}

}  // namespace devsan::hooks
