// A plugin that registers itself in a static initialiser; nobody ever looks for a symbol in it.
#include <cstdio>

extern "C" int torch_op(int x);
extern "C" void register_plugin(int (*entry)(int));

namespace {

struct Registration {
  Registration() {
    register_plugin([](int x) { return torch_op(x); });
  }
  ~Registration() { std::puts("unregistered"); }
} const g_registration;

}  // namespace
