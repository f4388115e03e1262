#include "preload/hooks_abi.h"
#include "tests/unit/preload/toys/toy_math.h"

namespace {

// Calls through this library's own slots, which must stay as they are.
int wrapped_add(int a, int b) {
  return toy::add(a, b) + toy::kWrapped;
}
int wrapped_multiply(int a, int b) {
  return toy::multiply(a, b) + toy::kWrapped;
}

// The second entry is for a function that this library does not have.
const devsan::Replacement g_replacements[] = {
    {reinterpret_cast<void*>(&toy::add), reinterpret_cast<void*>(&wrapped_add)},
    {nullptr, reinterpret_cast<void*>(&wrapped_add)},
    {reinterpret_cast<void*>(&toy::multiply), reinterpret_cast<void*>(&wrapped_multiply)},
};

const devsan::HookTable g_table = {devsan::kHooksAbi, 3, g_replacements, nullptr};

}  // namespace

extern "C" const devsan::HookTable* devsan_hooks_attach(const devsan::HostServices*) {
  return &g_table;
}
