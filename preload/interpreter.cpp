#include "preload/interpreter.h"

#include <link.h>

#include <cstdlib>
#include <cstring>

#include "preload/elf_image.h"

namespace devsan {
namespace {

constexpr long kOldestMinor = 10;
constexpr long kNewestMinor = 14;

// "3.11.2 (main, Apr 28 2025, 14:11:48) [GCC 12.2.0]"
const char* refusal_of(const char* text) noexcept {
  char* rest = nullptr;
  const long major = std::strtol(text, &rest, 10);
  const long minor = *rest == '.' ? std::strtol(rest + 1, nullptr, 10) : 0;
  if (std::strstr(text, "PyPy") != nullptr || major != 3 || minor < kOldestMinor || minor > kNewestMinor) {
    return "this Python is not supported (CPython 3.10 to 3.14 is); the program runs without devsan";
  }
  if (std::strstr(text, "free-threading build") != nullptr) {
    return "a free-threaded Python is not supported; the program runs without devsan";
  }
  return nullptr;
}

}  // namespace

void* find_in_process(const char* name) noexcept {
  struct Search {
    const char* name;
    void* found;
  } search{name, nullptr};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto* wanted = static_cast<Search*>(data);
        wanted->found = ElfImage(*info).find_address(wanted->name);
        return wanted->found != nullptr ? 1 : 0;
      },
      &search);
  return search.found;
}

Interpreter inspect_interpreter(bool importing) noexcept {
  Interpreter interpreter;
  // Works without the GIL and before the interpreter is initialised. The build is told apart by its text, since the
  // free-threaded one has all the symbols of the usual one.
  auto* version = reinterpret_cast<const char* (*)()>(find_in_process("Py_GetVersion"));
  if (version == nullptr) return interpreter;
  const char* text = version();
  interpreter.present = true;
  const std::size_t length = std::strcspn(text, " ");
  std::memcpy(interpreter.version, text, length < sizeof interpreter.version ? length : sizeof interpreter.version - 1);
  interpreter.refusal = refusal_of(text);
  if (interpreter.refusal != nullptr || !importing) return interpreter;
  auto* current = reinterpret_cast<void* (*)()>(find_in_process("PyInterpreterState_Get"));
  auto* main = reinterpret_cast<void* (*)()>(find_in_process("PyInterpreterState_Main"));
  if (current != nullptr && main != nullptr && current() != main()) {
    interpreter.refusal = "torch in a subinterpreter is not supported; the program runs without devsan";
  }
  return interpreter;
}

}  // namespace devsan
