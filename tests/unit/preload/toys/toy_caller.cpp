#include "tests/unit/preload/toys/toy_math.h"

using Operation = int (*)(int, int);

namespace {

// Filled by an R_X86_64_64 relocation.
Operation volatile g_stored = &toy::add;
Operation volatile g_table[] = {&toy::subtract};

}  // namespace

int toy::divide(int a, int b) {
  return a / b;
}

extern "C" {

int call_add(int a, int b) {
  return toy::add(a, b);
}
int call_multiply(int a, int b) {
  return toy::multiply(a, b);
}
int call_stored(int a, int b) {
  return g_stored(a, b);
}
int call_in_table(int a, int b) {
  return g_table[0](a, b);
}
int call_scale(int a, int b) {
  return toy::scale(a, b);
}
int call_divide(int a, int b) {
  return toy::divide(a, b);
}

}  // extern "C"
