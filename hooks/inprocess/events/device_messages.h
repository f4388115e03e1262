// Which of PyTorch's error messages are about devices.
#pragma once

#include <cstddef>
#include <string_view>

namespace devsan::hooks {

enum class DeviceComplaint {
  none,
  possible,  // speaks of devices or of tensor types that differ: counts when the operands' devices differ
  certain,   // can mean nothing else
};

// PyTorch's allocators', of a device or of the host, when there is no memory for a tensor.
bool is_out_of_memory(std::string_view message) noexcept;

DeviceComplaint device_complaint(std::string_view message) noexcept;

// The message as Python shows it: torch's bindings turn ATen's names of tensor types ("CUDAFloatType") into Python's
// ("torch.cuda.FloatTensor"), and end at a NUL, which cuDNN's checks write for the index of the first GPU. Writes to
// `buffer`, cut at its end.
std::string_view python_wording(std::string_view message, char* buffer, std::size_t buffer_size) noexcept;

}  // namespace devsan::hooks
