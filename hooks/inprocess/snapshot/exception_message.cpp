#include "hooks/inprocess/snapshot/exception_message.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>

#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_api.h"
#include "hooks/inprocess/snapshot/object_graph.h"
#include "hooks/inprocess/snapshot/object_members.h"
#include "hooks/inprocess/source/traceback_text.h"
#include "trace/function_names.h"

namespace devsan::hooks {

namespace {

constexpr std::ptrdiff_t kTypeStr = 136;    // PyTypeObject::tp_str
constexpr std::ptrdiff_t kFloatValue = 16;  // PyFloatObject::ob_fval
constexpr std::size_t kLongText = 1 << 14;  // a traceback of a worker
constexpr std::size_t kQuotedText = 300;    // of an argument
constexpr std::ptrdiff_t kMostEntries = 8;  // of a tuple or list
constexpr int kDeepest = 3;
constexpr int kMostFamilies = 32;

using Text = FixedText<1024>;

std::string_view name_of_type(const void* type) noexcept {
  return trace::own_name(field<const char*>(type, kTypeName));
}

// The exception of Python's that the type is, or is derived from, as far as these have a way of their own to say it.
const void* family_of(const void* type) noexcept {
  constexpr std::array<std::string_view, 5> kFamilies = {"BaseException", "OSError", "KeyError", "ImportError",
                                                         "SyntaxError"};
  for (int depth = 0; type != nullptr && depth < kMostFamilies; ++depth, type = field<const void*>(type, kTypeBase)) {
    if (!is_heap_type(type) && std::ranges::find(kFamilies, name_of_type(type)) != kFamilies.end()) return type;
  }
  return nullptr;
}

// Also of a subclass of str, whose text is not where text_of() looks.
std::string_view any_text_of(const void* object, char* buffer, std::size_t buffer_size) noexcept {
  const std::string_view text = text_of(object, buffer, buffer_size);
  if (!text.empty() || name_of_type(type_of(object)) == "str") return text;
  const char* const encoded = python.PyUnicode_AsUTF8(const_cast<void*>(object));
  if (encoded == nullptr) python.PyErr_Restore(nullptr, nullptr, nullptr);
  return encoded == nullptr ? std::string_view() : std::string_view(encoded);
}

void append_integer(Text& text, long number) noexcept {
  const auto bits = static_cast<std::uint64_t>(number);
  if (number < 0) text.append("-");
  text.append_number(number < 0 ? 0 - bits : bits);
}

void append_float(Text& text, double number) noexcept {
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  const std::string_view written(digits, static_cast<std::size_t>(end - digits));
  text.append(written);
  if (written.find_first_of(".en") == written.npos) text.append(".0");
}

void append_quoted(Text& text, const void* object) noexcept {
  char buffer[kQuotedText];
  std::string_view value = any_text_of(object, buffer, sizeof buffer);
  const bool cut = value.size() > kQuotedText;
  value = value.substr(0, kQuotedText);
  const bool single = value.find('\'') == value.npos || value.find('"') != value.npos;
  const char quote = single ? '\'' : '"';
  text.append({&quote, 1});
  for (const char& c : value) {
    if (c == '\n') {
      text.append("\\n");
    } else {
      if (c == quote || c == '\\') text.append("\\");
      text.append({&c, 1});
    }
  }
  if (cut) text.append("…");
  text.append({&quote, 1});
}

void append_entries(Text& text, const void* sequence, int depth) noexcept;

// As repr() has it, where that is known.
void append_value(Text& text, const void* object, int depth) noexcept {
  const std::string_view type = object != nullptr ? name_of_type(type_of(object)) : "NULL";
  if (object == python.none) {
    text.append("None");
  } else if (object != nullptr && is_text(object)) {
    append_quoted(text, object);
  } else if (object != nullptr && type == "bool") {
    text.append(integer_in(object).value_or(0) != 0 ? "True" : "False");
  } else if (const auto number = integer_in(object)) {
    append_integer(text, *number);
  } else if (object != nullptr && type == "float") {
    append_float(text, field<double>(object, kFloatValue));
  } else if (object != nullptr && depth < kDeepest && (is_tuple(object) || is_list(object))) {
    append_entries(text, object, depth + 1);
  } else {
    text.append("<").append(type).append(">");
  }
}

// "('lr', 3)" and "['a']"; what is a tuple of one is written as arguments are: "(3)".
void append_entries(Text& text, const void* sequence, int depth) noexcept {
  const bool list = is_list(sequence);
  const char* const items =
      list ? field<const char*>(sequence, kListItems) : static_cast<const char*>(sequence) + kTupleItems;
  const std::ptrdiff_t size = size_of(sequence);
  text.append(list ? "[" : "(");
  for (std::ptrdiff_t k = 0; k < std::min(size, kMostEntries); ++k) {
    if (k > 0) text.append(", ");
    append_value(text, field<const void*>(items, k * static_cast<std::ptrdiff_t>(sizeof(void*))), depth);
  }
  if (size > kMostEntries) text.append(", …");
  text.append(list ? "]" : ")");
}

// "[Errno 2] No such file or directory: '/srv/data.bin'"; false where it says something else.
bool append_os_error(Text& text, const void* exception) noexcept {
  const void* const number = member_of(exception, "errno");
  const void* const reason = member_of(exception, "strerror");
  if (number == nullptr || reason == nullptr) return false;
  text.append("[Errno ");
  append_value(text, number, 0);
  text.append("] ");
  char buffer[kQuotedText];
  text.append(text_of(reason, buffer, sizeof buffer));
  if (const void* const file = member_of(exception, "filename")) {
    text.append(": ");
    append_value(text, file, 0);
    if (const void* const other = member_of(exception, "filename2")) {
      text.append(" -> ");
      append_value(text, other, 0);
    }
  }
  return true;
}

// What a worker sent: "Caught KeyError in DataLoader worker process 1: KeyError: 'no image' (data.py:26 in
// __getitem__)".
bool append_traceback(Text& text, std::string_view message) noexcept {
  const std::optional<TracebackText> found = traceback_in(message);
  if (!found) return false;
  text.append(found->heading);
  if (!found->heading.empty() && !found->exception.empty()) text.append(": ");
  text.append(found->exception);
  if (found->file.empty()) return true;
  text.append(" (").append(found->file.substr(found->file.rfind('/') + 1)).append(":").append(found->line);
  if (!found->function.empty()) text.append(" in ").append(found->function);
  text.append(")");
  return true;
}

void append_text(Text& text, const void* object) noexcept {
  char buffer[kLongText];
  const std::string_view said = any_text_of(object, buffer, sizeof buffer);
  if (!append_traceback(text, said)) text.append(said.substr(0, said.find('\n')));
}

void append_exception(ExceptionMessage& message, const void* exception, int depth) noexcept;

// str() of the only argument.
void append_only(ExceptionMessage& message, const void* object, int depth) noexcept {
  if (object != nullptr && is_text(object)) return append_text(message.text, object);
  if (object != nullptr && is_exception(object)) {
    if (depth < kDeepest) append_exception(message, object, depth + 1);
    return;
  }
  append_value(message.text, object, depth);
}

void append_exception(ExceptionMessage& message, const void* exception, int depth) noexcept {
  const void* const type = type_of(exception);
  const void* const family = family_of(type);
  const void* const arguments = field<const void*>(exception, kExceptionArguments);
  if (arguments == nullptr || !is_tuple(arguments)) return;
  if (family == nullptr || field<const void*>(type, kTypeStr) != field<const void*>(family, kTypeStr)) {
    message.is_arguments = depth == 0;
    if (depth > 0) message.text.append(name_of_type(type));
    return append_entries(message.text, arguments, 0);
  }
  const std::string_view name = name_of_type(family);
  if (name == "OSError" && append_os_error(message.text, exception)) return;
  const std::ptrdiff_t count = size_of(arguments);
  if (count == 0) return;
  const void* const first = field<const void*>(arguments, kTupleItems);
  const bool says_first = count == 1 || name == "ImportError" || name == "SyntaxError";
  if (!says_first) return append_entries(message.text, arguments, 0);
  // Python shows a missing key as repr() does. A class of texts with a repr() of its own is there to be shown as it is.
  const bool key = name == "KeyError" && first != nullptr && is_text(first) && name_of_type(type_of(first)) == "str";
  if (key) return append_quoted(message.text, first);
  append_only(message, first, depth);
}

}  // namespace

void tell_exception(const void* exception, ExceptionMessage& message) noexcept {
  if (exception == nullptr) return;
  if (!is_exception(exception)) return append_text(message.text, exception);
  append_exception(message, exception, 0);
}

}  // namespace devsan::hooks
