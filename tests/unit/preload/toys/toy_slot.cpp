// Stands for hooks: needs two operators of torch, something of libdevsan.so, of the C library and, weakly, of nobody.
#include <cstdlib>

extern "C" {
int toy_operator();
int toy_newer_operator();
int devsan_toy();
int toy_nowhere() __attribute__((weak));

int toy_slot() {
  return toy_operator() + toy_newer_operator() + devsan_toy() + (std::getenv("TOY") != nullptr ? 1 : 0) +
         (toy_nowhere != nullptr ? toy_nowhere() : 0);
}
}
