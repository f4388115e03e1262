#include "tests/unit/preload/toys/toy_math.h"

#ifdef TOY_OTHER
constexpr int kAdded = toy::kOther;
#else
constexpr int kAdded = 0;
#endif

namespace {

int remainder_of(int a, int b) {
  return a % b + kAdded;
}

}  // namespace

int (*const volatile toy::own_table[1])(int, int) = {&remainder_of};

int toy::add(int a, int b) {
  return a + b + kAdded;
}
int toy::multiply(int a, int b) {
  return a * b + kAdded;
}
int toy::subtract(int a, int b) {
  return a - b + kAdded;
}
int toy::scale(int a, int b) {
  return a * b + kAdded;
}

extern "C" int scale_inside(int a, int b) {
  return toy::scale(a, b);
}
extern "C" int call_in_own_table(int a, int b) {
  return toy::own_table[0](a, b);
}
