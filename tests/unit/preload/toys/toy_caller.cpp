#include "tests/unit/preload/toys/toy_math.h"

using Operation = int (*)(int, int);

namespace {

// Filled by an R_X86_64_64 relocation.
Operation volatile g_stored = &toy::add;

}  // namespace

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

}  // extern "C"
