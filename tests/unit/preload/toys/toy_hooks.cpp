#include "preload/hooks_abi.h"
#include "tests/unit/preload/toys/toy_math.h"

namespace toy {
__attribute__((weak)) int divide(int a, int b);
}

namespace {

// Calls through this library's own slots, which must stay as they are.
int wrapped_add(int a, int b) {
  return toy::add(a, b) + toy::kWrapped;
}
int wrapped_multiply(int a, int b) {
  return toy::multiply(a, b) + toy::kWrapped;
}

int wrapped_subtract(int a, int b) {
  return toy::subtract(a, b) + toy::kWrapped;
}
int wrapped_divide(int, int) {
  return toy::kWrapped;
}
int wrapped_scale(int a, int b) {
  return toy::scale(a, b) + toy::kWrapped;
}

// The second entry is for a function that this library does not have.
const devsan::Replacement g_replacements[] = {
    {reinterpret_cast<void*>(&toy::add), reinterpret_cast<void*>(&wrapped_add)},
    {nullptr, reinterpret_cast<void*>(&wrapped_add)},
    {reinterpret_cast<void*>(&toy::multiply), reinterpret_cast<void*>(&wrapped_multiply)},
    {reinterpret_cast<void*>(&toy::subtract), reinterpret_cast<void*>(&wrapped_subtract), false, true},
    {reinterpret_cast<void*>(&toy::divide), reinterpret_cast<void*>(&wrapped_divide), true},
    {.real = reinterpret_cast<void*>(&toy::scale),
     .wrapper = reinterpret_cast<void*>(&wrapped_scale),
     .on_demand = true},
};

const devsan::HookTable g_table = {devsan::kHooksAbi, 6, g_replacements, nullptr};

}  // namespace

extern "C" const devsan::HookTable* devsan_hooks_attach(const devsan::HostServices*) {
  return &g_table;
}
