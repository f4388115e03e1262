// Stands for libtorch_cpu.so; an older release lacks the second function.
extern "C" {
int toy_operator() {
  return 1;
}
#ifndef TOY_OLDER
int toy_newer_operator() {
  return 2;
}
#endif
}
