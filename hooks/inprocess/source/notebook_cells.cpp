#include "hooks/inprocess/source/notebook_cells.h"

#include <charconv>
#include <string>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/own_attributes.h"
#include "hooks/inprocess/interpreter/python_api.h"
#include "trace/source_titles.h"

namespace devsan::hooks {

namespace {

// The digits behind `before`, up to the next '-'; 0 where there are none.
int number_behind(std::string_view name, std::string_view before) noexcept {
  int number = 0;
  if (name.starts_with(before)) std::from_chars(name.data() + before.size(), name.data() + name.size(), number);
  return number;
}

// A member of an instance, a class or a module, borrowed: read from its own dictionary.
void* member(void* object, std::string_view name) {
  if (object != nullptr && is_type(object)) return dict_entry(field<const void*>(object, kTypeDict), name);
  return OwnAttributes(object)[name];
}

// CPython's ints up to 2**30 lie in one digit: behind the size, or from 3.12 on behind a word that says both.
int small_number(const void* object) noexcept {
  if (object == nullptr || !is_integer(object)) return 0;
  constexpr std::ptrdiff_t kDigit = 24;
  const bool one_digit =
      python.minor < 12 ? size_of(object) == 1 : field<std::uintptr_t>(object, kObjectSize) >> 3 == 1;
  return one_digit ? field<int>(object, kDigit) : 0;
}

// IPython's compiler keeps the numbers of the cells by the names that it has given to them.
int number_in_kernel(std::string_view name) {
  void* const module = dict_entry(python.PyImport_GetModuleDict(), "IPython.core.interactiveshell");
  void* const shell = member(member(module, "InteractiveShell"), "_instance");
  return small_number(dict_entry(member(member(shell, "compile"), "_filename_map"), name));
}

}  // namespace

void name_notebook_cell(trace::StringId file, std::string_view name) {
  int number = number_behind(name, "<ipython-input-");
  if (number == 0 && name.find("/ipykernel_") != name.npos) number = number_in_kernel(name);
  if (number <= 0) return;
  runtime.recorder->add_source_line(file, trace::kTitleLine, "In [" + std::to_string(number) + "]");
}

}  // namespace devsan::hooks
