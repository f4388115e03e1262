// Exits 0 when a program at a fixed address, which takes the address of a replaced function, still gets there.
#include <dlfcn.h>

#include <cstdio>

#include "preload/plt_patcher.h"
#include "tests/unit/preload/toys/toy_math.h"

namespace {

constinit devsan::PltPatcher g_patcher;
int (*volatile g_add)(int, int) = nullptr;

bool expect(const char* what, int value, int wanted) {
  if (value == wanted) return true;
  std::fprintf(stderr, "%s gave %d, not %d\n", what, value, wanted);
  return false;
}

}  // namespace

int main(int, char** arguments) {
  g_add = &toy::add;
  void* hooks = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (hooks == nullptr) return 2;
  auto* attach = reinterpret_cast<devsan::HooksAttach>(dlsym(hooks, "devsan_hooks_attach"));
  const auto* object = static_cast<const link_map*>(hooks);
  if (!g_patcher.start(*attach(nullptr), devsan::ElfImage(object->l_addr, object->l_ld))) return 3;
  g_patcher.scan();
  // The wrapper gets to the real function by this program's PLT, so these calls cannot be seen; the others can.
  const bool right = expect("a call of add", toy::add(2, 3), 5) && expect("a call by address", g_add(2, 3), 5) &&
                     expect("a call of multiply", toy::multiply(2, 3), 6 + toy::kWrapped);
  return right ? 0 : 1;
}
