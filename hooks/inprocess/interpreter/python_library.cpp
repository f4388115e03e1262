#include "hooks/inprocess/interpreter/python_library.h"

#include <dlfcn.h>

namespace devsan::hooks {

void* find_in_python_library(const char* name) noexcept {
  void* library = ::dlopen("libtorch_python.so", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* found = ::dlsym(library, name);
  ::dlclose(library);
  return found;
}

}  // namespace devsan::hooks
