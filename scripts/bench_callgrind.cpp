// Lets a Python program say what callgrind counts. Does nothing outside valgrind.
#include <valgrind/callgrind.h>

extern "C" void bench_instrument() {
  CALLGRIND_START_INSTRUMENTATION;
}

extern "C" void bench_count_from_here() {
  CALLGRIND_ZERO_STATS;
}

extern "C" void bench_count_to_here(const char* name) {
  CALLGRIND_DUMP_STATS_AT(name);
  CALLGRIND_STOP_INSTRUMENTATION;
}
