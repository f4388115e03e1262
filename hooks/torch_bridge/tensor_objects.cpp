#include "hooks/inprocess/bridge/tensor_objects.h"

#include <c10/core/GeneratorImpl.h>
#include <c10/core/UndefinedTensorImpl.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "hooks/inprocess/common/own_memory.h"
#include "hooks/inprocess/interpreter/python_api.h"
#include "hooks/torch_bridge/tensor_fields.h"

namespace devsan::hooks {

namespace {

// Where a c10::TensorImpl keeps its Python object: in one word, or two of which one is the interpreter.
bool is_tensor_of(std::uintptr_t candidate, const void* object) noexcept {
  c10::TensorImpl* known = c10::UndefinedTensorImpl::singleton();
  const auto at = reinterpret_cast<const char*>(known->pyobj_slot()) - reinterpret_cast<const char*>(known);
  if (candidate == 0 || candidate % alignof(c10::TensorImpl) != 0) return false;
  constexpr std::size_t kWords = sizeof(c10::impl::PyObjectSlot) / sizeof(void*);
  std::array<const char*, kWords> addresses{};
  std::array<std::uint64_t, kWords> words{};
  for (std::size_t k = 0; k < kWords; ++k) {
    addresses[k] = reinterpret_cast<const char*>(candidate) + at + k * sizeof(void*);
  }
  if (!read_own_words(addresses, words)) return false;
  return std::ranges::any_of(words, [&](std::uint64_t word) {
    return (word & ~std::uint64_t{1}) == reinterpret_cast<std::uintptr_t>(object);  // until 2.9 the low bit is a mark
  });
}

}  // namespace

const void* base_tensor_type(const void* type) noexcept {
  for (int depth = 0; type != nullptr && depth < 32; ++depth) {
    const std::string_view name = field<const char*>(type, kTypeName);
    if (name == "torch._C.TensorBase" || name == "torch._C._TensorBase") return type;
    type = field<const void*>(type, kTypeBase);
  }
  return nullptr;
}

std::ptrdiff_t tensor_offset_in(const void* object) noexcept {
  if (base_tensor_type(type_of(object)) == nullptr) return -1;
  for (std::ptrdiff_t offset = 16; offset <= 32; offset += 8) {
    if (is_tensor_of(field<std::uintptr_t>(object, offset), object)) return offset;
  }
  return -1;
}

const c10::TensorImpl* tensor_of(const void* object) noexcept {
  const std::ptrdiff_t offset = tensor_offset_in(object);
  return offset < 0 ? nullptr : field<const c10::TensorImpl*>(object, offset);
}

DeviceKey device_in(const void* object) noexcept {
  constexpr std::ptrdiff_t kDevice = 16;  // THPDevice::device: its type and its index
  if (std::string_view(field<const char*>(type_of(object), kTypeName)) != "torch.device") return 0;
  return device_key(c10::Device(static_cast<c10::DeviceType>(field<std::int8_t>(object, kDevice)),
                                field<std::int8_t>(object, kDevice + 1)));
}

DeviceKey device_of_generator(const void* generator) noexcept {
  return device_key(static_cast<const c10::GeneratorImpl*>(generator)->device());
}

}  // namespace devsan::hooks
