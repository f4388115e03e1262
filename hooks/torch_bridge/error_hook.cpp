// PyTorch makes a c10::Error for every failure before it throws it, whichever way the operator was called: the one
// place where each device-check failure passes. Its constructors are called through PLT slots, also inside libc10.
#include <c10/util/Exception.h>

#include <string>

#include "hooks/inprocess/events/operator_table.h"
#include "hooks/torch_bridge/meeting.h"
#include "hooks/torch_bridge/torch_function.h"

namespace devsan::hooks {

// c10::Error::Error(SourceLocation, std::string) as a plain function of the same calling convention; for a complete
// object, and for the base of a subclass such as IndexError. Both C++ ABIs of std::string have their own names.
#if _GLIBCXX_USE_CXX11_ABI
#define DEVSAN_STRING "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
#else
#define DEVSAN_STRING "Ss"
#endif
void complete_error(void* self, c10::SourceLocation location, std::string message) __asm__(
    "_ZN3c105ErrorC1ENS_14SourceLocationE" DEVSAN_STRING) DEVSAN_TORCH_FUNCTION;
void base_error(void* self, c10::SourceLocation location, std::string message) __asm__(
    "_ZN3c105ErrorC2ENS_14SourceLocationE" DEVSAN_STRING) DEVSAN_TORCH_FUNCTION;
#undef DEVSAN_STRING

namespace {

void complete_error_wrapper(void* self, c10::SourceLocation location, std::string message) {
  note_error(message);
  complete_error(self, location, std::move(message));
}

void base_error_wrapper(void* self, c10::SourceLocation location, std::string message) {
  note_error(message);
  base_error(self, location, std::move(message));
}

DEVSAN_REPLACEMENTS const Replacement error_replacements[] = {
    {reinterpret_cast<void*>(&complete_error), reinterpret_cast<void*>(&complete_error_wrapper)},
    {reinterpret_cast<void*>(&base_error), reinterpret_cast<void*>(&base_error_wrapper)},
};

}  // namespace

}  // namespace devsan::hooks
