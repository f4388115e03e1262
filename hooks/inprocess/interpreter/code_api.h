// CPython's functions and code objects, as far as only names, facts and messages need to know them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "hooks/inprocess/interpreter/python_api.h"

namespace devsan::hooks {

struct CodeApi {
#define DEVSAN_CODE_API(required, result, name, parameters) result(*name) parameters = nullptr;
#include "hooks/inprocess/interpreter/code_api.def"
#undef DEVSAN_CODE_API
  const void* function_type = nullptr;  // &PyFunction_Type
  bool complete = false;                // all that is required is there

  // Offsets of members of code objects, 0 where there is no such member.
  std::ptrdiff_t constants = 0;
  std::ptrdiff_t arguments = 0;
  std::ptrdiff_t keyword_arguments = 0;
  std::ptrdiff_t flags = 0;
  std::ptrdiff_t first_line = 0;
  std::ptrdiff_t bytes = 0;  // until 3.10, as the three below
  std::ptrdiff_t local_names = 0;
  std::ptrdiff_t cell_names = 0;
  std::ptrdiff_t free_names = 0;
};

// The offset of a member in code objects; 0 where they have none of this name.
std::ptrdiff_t code_member(const char* name) noexcept;

// What the member of a code object at an offset refers to; null where the offset is 0.
inline const void* code_part(const void* code, std::ptrdiff_t offset) noexcept {
  return offset != 0 ? field<const void*>(code, offset) : nullptr;
}

// Looked up once, when it is first needed. After find_python(), with the GIL.
const CodeApi& code_api() noexcept;

// Of PyTypeObject, which has not changed since 3.8.
inline constexpr std::ptrdiff_t kTypeDict = 264;
inline constexpr std::ptrdiff_t kTypeMro = 344;
inline constexpr std::ptrdiff_t kBytesText = 32;       // PyBytesObject::ob_sval
inline constexpr std::ptrdiff_t kMethodFunction = 16;  // PyMethodObject::im_func
inline constexpr std::ptrdiff_t kMethodSelf = 24;      // PyMethodObject::im_self
inline constexpr std::ptrdiff_t kDictUsed = 16;        // PyDictObject::ma_used
inline constexpr std::ptrdiff_t kSetUsed = 24;         // PySetObject::used

inline constexpr unsigned kHeapTypeFlag = 9;  // Py_TPFLAGS_HEAPTYPE

// Whether a class statement has made the type.
inline bool is_heap_type(const void* type) noexcept {
  return (field<unsigned long>(type, kTypeFlags) >> kHeapTypeFlag & 1) != 0;
}

inline bool is_integer(const void* object) noexcept {
  return has_type_flag(object, 24);
}
// The value of an int, or of a subclass; none for any other object, and for a number that has no room in a long.
std::optional<long> integer_in(const void* object) noexcept;
inline bool is_bytes(const void* object) noexcept {
  return has_type_flag(object, 27);
}
inline bool is_function(const void* object) noexcept {
  return type_of(object) == code_api().function_type;
}

// The entry of a dictionary by its name, found without asking keys whether they are equal; null where there is none.
void* dict_entry(const void* dict, std::string_view name) noexcept;

// A type that a class statement made may call itself as it likes.
inline bool is_builtin(const void* object, std::string_view name) noexcept {
  return !has_type_flag(object, 9) && std::string_view(field<const char*>(type_of(object), kTypeName)) == name;
}

// Entry `index` of a tuple; null where there is none, or `tuple` is none.
inline const void* tuple_entry(const void* tuple, std::ptrdiff_t index) noexcept {
  if (tuple == nullptr || !is_tuple(tuple) || index < 0 || index >= size_of(tuple)) return nullptr;
  return field<const void*>(tuple, kTupleItems + index * static_cast<std::ptrdiff_t>(sizeof(void*)));
}

// The class itself, and all that it is derived from, in the order in which Python looks for attributes; null behind the
// last, and behind as many as nobody derives from on purpose.
inline const void* base_at(const void* type, std::ptrdiff_t index) noexcept {
  constexpr std::ptrdiff_t kMaxBases = 64;
  return index < kMaxBases ? tuple_entry(field<const void*>(type, kTypeMro), index) : nullptr;
}

// Whether a class, or one that it is derived from, was made by a class statement of this name and defines this method;
// any, where none is asked for.
bool derives_from(const void* type, std::string_view name, std::string_view method = {}) noexcept;

// Members of a code object; null, 0 or no name where it has none.
const void* code_constants(const void* code) noexcept;  // a tuple
int code_first_line(const void* code) noexcept;         // of its `def`, or its first decorator
int code_arguments(const void* code) noexcept;          // positional arguments; they are the first locals
int code_named_arguments(const void* code) noexcept;    // with those given by keyword alone, which come next
int code_all_arguments(const void* code) noexcept;      // with `*args` and `**kwargs`, which come after these
// The name of local `index` in the order of a frame's slots: locals, cells, free variables.
const void* code_local_name(const void* code, std::ptrdiff_t index) noexcept;
// The name of variable `index` of the `count` that a function takes from those around it.
const void* code_free_name(const void* code, std::ptrdiff_t index, std::ptrdiff_t count) noexcept;
bool is_module_body(const void* code) noexcept;

// The code of a function object.
const void* code_of_function(const void* function) noexcept;

// Whether a name is this text.
bool is_name(const void* name, std::string_view text) noexcept;

// The text of a str as a string of its own, cut at 255 bytes where it is not pure ASCII. May throw std::bad_alloc.
inline std::string text_of(const void* object) {
  char buffer[256];
  return std::string(text_of(object, buffer, sizeof buffer));
}

}  // namespace devsan::hooks
