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

int (*const real_entry)(int, int) = toy::own_table[0];
int wrapped_entry(int a, int b) {
  return real_entry(a, b) + toy::kWrapped;
}

const devsan::TableEntry g_table_entries[] = {
    {reinterpret_cast<void**>(const_cast<int (**)(int, int)>(toy::own_table)), reinterpret_cast<void*>(&wrapped_entry)},
};

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

const devsan::HookTable g_table = {.abi = devsan::kHooksAbi,
                                   .count = 6,
                                   .replacements = g_replacements,
                                   .status_at_end = nullptr,
                                   .table_entries = g_table_entries,
                                   .table_entry_count = 1};

}  // namespace

extern "C" const devsan::HookTable* devsan_hooks_attach(const devsan::HostServices*) {
  return &g_table;
}
