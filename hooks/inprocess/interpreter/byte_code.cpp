#include "hooks/inprocess/interpreter/byte_code.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/own_attributes.h"

namespace devsan::hooks {

namespace {

constexpr std::ptrdiff_t kMaxCodeBytes = 256 * 1024;

// The number of an instruction in this interpreter, by its name; -1 where `opcode`, which torch imports, does not say.
long opcode_named(const char* name) noexcept {
  const OwnAttributes opcode = attributes_of_module("opcode");
  const void* number = dict_entry(opcode["opmap"], name);
  return integer_in(number).value_or(-1);
}

}  // namespace

ByteCode::ByteCode(const void* code) noexcept {
  if (type_of(code) != python.code_type) return;
  const CodeApi& api = code_api();
  if (api.PyCode_GetCode != nullptr) owned_ = api.PyCode_GetCode(const_cast<void*>(code));
  const void* bytes = owned_ != nullptr ? owned_ : code_part(code, api.bytes);
  if (bytes == nullptr || !is_bytes(bytes) || size_of(bytes) > kMaxCodeBytes) return;
  text_ = static_cast<const unsigned char*>(bytes) + kBytesText;
  size_ = static_cast<int>(size_of(bytes)) & ~1;
}

ByteCode::~ByteCode() {
  if (owned_ != nullptr) python.Py_DecRef(owned_);
}

bool ByteCode::raises_at(int offset) const noexcept {
  if (offset < 0 || offset >= size_) return false;
  return std::ranges::any_of(std::array{"RAISE_VARARGS", "RERAISE"},
                             [&](const char* name) { return opcode_named(name) == text_[offset]; });
}

}  // namespace devsan::hooks
