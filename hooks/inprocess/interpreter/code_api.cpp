#include "hooks/inprocess/interpreter/code_api.h"

#include <dlfcn.h>

#include <cstring>

#include "hooks/inprocess/interpreter/python_frames.h"

namespace devsan::hooks {

namespace {

CodeApi look_up() noexcept {
  CodeApi api;
  api.function_type = ::dlsym(RTLD_DEFAULT, "PyFunction_Type");
  api.complete = api.function_type != nullptr;
#define DEVSAN_CODE_API(required, result, name, parameters)                        \
  api.name = reinterpret_cast<result(*) parameters>(::dlsym(RTLD_DEFAULT, #name)); \
  if ((required) && api.name == nullptr) api.complete = false;
#include "hooks/inprocess/interpreter/code_api.def"
#undef DEVSAN_CODE_API
  api.constants = code_member("co_consts");
  api.arguments = code_member("co_argcount");
  api.keyword_arguments = code_member("co_kwonlyargcount");
  api.flags = code_member("co_flags");
  api.first_line = code_member("co_firstlineno");
  api.bytes = code_member("co_code");
  api.local_names = code_member("co_varnames");
  api.cell_names = code_member("co_cellvars");
  api.free_names = code_member("co_freevars");
  return api;
}

}  // namespace

std::ptrdiff_t code_member(const char* name) noexcept {
  const char* member = field<const char*>(python.code_type, kTypeMembers);
  for (; member != nullptr && field<const char*>(member, 0) != nullptr; member += kMemberSize) {
    if (std::strcmp(field<const char*>(member, 0), name) == 0) return field<std::ptrdiff_t>(member, kMemberOffset);
  }
  return 0;
}

const CodeApi& code_api() noexcept {
  static const CodeApi api = look_up();
  return api;
}

// Clears the OverflowError of a number that has no room, for the next call would be taken for failed.
std::optional<long> integer_in(const void* object) noexcept {
  if (object == nullptr || !is_integer(object) || code_api().PyLong_AsLong == nullptr) return std::nullopt;
  void* error[3] = {};
  const long number = code_api().PyLong_AsLong(const_cast<void*>(object));
  python.PyErr_Fetch(&error[0], &error[1], &error[2]);
  if (error[0] == nullptr) return number;
  for (void* part : error) {
    if (part != nullptr) python.Py_DecRef(part);
  }
  return std::nullopt;
}

void* dict_entry(const void* dict, std::string_view name) noexcept {
  std::ptrdiff_t at = 0;
  void* key = nullptr;
  void* value = nullptr;
  if (dict == nullptr || !is_dict(dict)) return nullptr;
  while (python.PyDict_Next(const_cast<void*>(dict), &at, &key, &value) != 0) {
    if (is_name(key, name)) return value;
  }
  return nullptr;
}

bool derives_from(const void* type, std::string_view name, std::string_view method) noexcept {
  for (std::ptrdiff_t k = 0; const void* base = base_at(type, k); ++k) {
    if (!is_heap_type(base) || name != field<const char*>(base, kTypeName)) continue;
    if (method.empty() || dict_entry(field<const void*>(base, kTypeDict), method) != nullptr) return true;
  }
  return false;
}

const void* code_constants(const void* code) noexcept {
  return code_part(code, code_api().constants);
}

int code_first_line(const void* code) noexcept {
  return code_api().first_line != 0 ? field<int>(code, code_api().first_line) : 0;
}

int code_arguments(const void* code) noexcept {
  return code_api().arguments != 0 ? field<int>(code, code_api().arguments) : 0;
}

int code_named_arguments(const void* code) noexcept {
  const std::ptrdiff_t by_keyword = code_api().keyword_arguments;
  return code_arguments(code) + (by_keyword != 0 ? field<int>(code, by_keyword) : 0);
}

int code_all_arguments(const void* code) noexcept {
  constexpr int kVariableArguments = 0x04;
  constexpr int kVariableKeywords = 0x08;
  const int flags = code_api().flags != 0 ? field<int>(code, code_api().flags) : 0;
  return code_named_arguments(code) + ((flags & kVariableArguments) != 0) + ((flags & kVariableKeywords) != 0);
}

const void* code_local_name(const void* code, std::ptrdiff_t index) noexcept {
  if (frame_layout.local_names != 0) return tuple_entry(field<const void*>(code, frame_layout.local_names), index);
  const CodeApi& api = code_api();
  for (const std::ptrdiff_t part : {api.local_names, api.cell_names, api.free_names}) {
    const void* names = code_part(code, part);
    if (names == nullptr || !is_tuple(names)) return nullptr;
    if (index < size_of(names)) return tuple_entry(names, index);
    index -= size_of(names);
  }
  return nullptr;
}

const void* code_free_name(const void* code, std::ptrdiff_t index, std::ptrdiff_t count) noexcept {
  const void* names = frame_layout.local_names != 0 ? field<const void*>(code, frame_layout.local_names)
                                                    : code_part(code, code_api().free_names);
  return names != nullptr && is_tuple(names) ? tuple_entry(names, size_of(names) - count + index) : nullptr;
}

bool is_module_body(const void* code) noexcept {
  return is_name(field<const void*>(code, code_members.name), "<module>");
}

const void* code_of_function(const void* function) noexcept {
  return code_api().PyFunction_GetCode(const_cast<void*>(function));
}

bool is_name(const void* name, std::string_view text) noexcept {
  char buffer[256];
  return name != nullptr && text_of(name, buffer, sizeof buffer) == text;
}

}  // namespace devsan::hooks
