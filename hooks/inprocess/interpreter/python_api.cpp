#include "hooks/inprocess/interpreter/python_api.h"

#include <dlfcn.h>

#include <cstdlib>

namespace devsan::hooks {

PythonApi python;

namespace {

// Where a str keeps its state bits and its characters: kind (3 bits), compact, ascii. Releases differ, so both are
// learnt from a str whose text is known.
struct TextLayout {
  unsigned state_shift = 2;
  std::ptrdiff_t ascii_data = 48;
  std::ptrdiff_t wide_data = 72;
};
TextLayout text_layout;

struct TextState {
  unsigned kind;
  bool compact;
  bool ascii;
};

TextState text_state(const void* text, unsigned shift) noexcept {
  const auto bits = field<std::uint32_t>(text, 32);
  return {bits >> shift & 7, (bits >> (shift + 3) & 1) != 0, (bits >> (shift + 4) & 1) != 0};
}

std::size_t write_utf8(std::uint32_t point, char* to, std::size_t room) noexcept {
  if (point < 0x80) {
    if (room < 1) return 0;
    to[0] = static_cast<char>(point);
    return 1;
  }
  const std::size_t length = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  if (room < length) return 0;
  for (std::size_t k = length; k-- > 1; point >>= 6) to[k] = static_cast<char>(0x80 | (point & 0x3f));
  static constexpr unsigned char kLead[] = {0, 0, 0xc0, 0xe0, 0xf0};
  to[0] = static_cast<char>(kLead[length] | point);
  return length;
}

}  // namespace

bool interpreter_lives() noexcept {
  if (python.Py_IsFinalizing != nullptr) return python.Py_IsFinalizing() == 0;
  return python._Py_IsFinalizing == nullptr || python._Py_IsFinalizing() == 0;
}

std::string_view text_of(const void* object, char* buffer, std::size_t buffer_size) noexcept {
  if (object == nullptr || !is_text(object)) return {};
  const TextState state = text_state(object, text_layout.state_shift);
  if (!state.compact) return {};
  const auto length = static_cast<std::size_t>(size_of(object));
  const char* data = static_cast<const char*>(object);
  if (state.ascii) return {data + text_layout.ascii_data, length};
  std::size_t used = 0;
  for (std::size_t k = 0; k < length; ++k) {
    const std::ptrdiff_t at = text_layout.wide_data + static_cast<std::ptrdiff_t>(k * state.kind);
    const std::uint32_t point = state.kind == 1   ? field<std::uint8_t>(data, at)
                                : state.kind == 2 ? field<std::uint16_t>(data, at)
                                                  : field<std::uint32_t>(data, at);
    const std::size_t written = write_utf8(point, buffer + used, buffer_size - used);
    if (written == 0) break;
    used += written;
  }
  return {buffer, used};
}

bool learn_text_layout(void* ascii_text) noexcept {
  const char* characters = python.PyUnicode_AsUTF8(ascii_text);
  if (characters == nullptr) return false;
  text_layout.ascii_data = characters - static_cast<const char*>(ascii_text);
  text_layout.wide_data = text_layout.ascii_data + (python.minor >= 12 ? 16 : 24);  // 3.12 dropped wstr and its length
  for (const unsigned shift : {2U, 16U, 8U}) {
    const TextState state = text_state(ascii_text, shift);
    if (state.kind == 1 && state.compact && state.ascii) {
      text_layout.state_shift = shift;
      return true;
    }
  }
  return false;
}

bool find_python(const char** reason) noexcept {
  *reason = nullptr;
  bool complete = true;
#define DEVSAN_PYTHON(required, result, name, parameters)                             \
  python.name = reinterpret_cast<result(*) parameters>(::dlsym(RTLD_DEFAULT, #name)); \
  if ((required) && python.name == nullptr) complete = false;
#include "hooks/inprocess/interpreter/python_api.def"
#undef DEVSAN_PYTHON
  if (python.Py_GetVersion == nullptr || python.Py_IsInitialized == nullptr || python.Py_IsInitialized() == 0) {
    return false;
  }
  python.code_type = ::dlsym(RTLD_DEFAULT, "PyCode_Type");
  python.none = ::dlsym(RTLD_DEFAULT, "_Py_NoneStruct");
  const std::string_view version = python.Py_GetVersion();
  const int minor = version.substr(0, 2) == "3." ? std::atoi(version.data() + 2) : 0;
  if (minor < 10 || minor > 14) {
    *reason = "this Python is not one of 3.10 to 3.14: findings carry no Python lines";
  } else if (!complete || python.code_type == nullptr || python.none == nullptr) {
    *reason = "this Python lacks functions that devsan needs: findings carry no Python lines";
  } else {
    python.minor = minor;
  }
  return python.minor != 0;
}

PythonSection::PythonSection() noexcept : gil_(python.PyGILState_Ensure()) {
  collector_ = python.PyGC_Disable();
  python.PyErr_Fetch(&error_[0], &error_[1], &error_[2]);
}

std::string_view exception_text(const void* exception, char* buffer, std::size_t buffer_size) noexcept {
  if (exception != nullptr && is_exception(exception)) {
    const void* arguments = field<const void*>(exception, kExceptionArguments);
    if (arguments == nullptr || !is_tuple(arguments) || size_of(arguments) == 0) return {};
    exception = field<const void*>(arguments, kTupleItems);
  }
  return text_of(exception, buffer, buffer_size);
}

PythonSection::~PythonSection() {
  python.PyErr_Restore(error_[0], error_[1], error_[2]);
  if (collector_ != 0) python.PyGC_Enable();
  python.PyGILState_Release(gil_);
}

}  // namespace devsan::hooks
