// Python's C API is looked up by name: the library needs no Python headers, serves any version, and can be loaded into
// a program without Python.
#include "sim/python_module.h"

#include <dlfcn.h>

#include <cstdio>
#include <filesystem>
#include <string>

namespace devsan::sim {
namespace {

constexpr int kFileInput = 257;  // Py_file_input

// Makes the package `devsan_simulation` without touching sys.path, and hands it the extension module. Byte code is not
// written: the files may lie where nothing else should.
constexpr const char* kBootstrap = R"(
import importlib.util, sys
write_no_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
try:
    name = "devsan_simulation"
    spec = importlib.util.spec_from_file_location(
        name, f"{folder}/{name}/__init__.py", submodule_search_locations=[f"{folder}/{name}"])
    package = importlib.util.module_from_spec(spec)
    sys.modules[name] = package
    spec.loader.exec_module(package)
    package.extend(extension, library)
finally:
    sys.dont_write_bytecode = write_no_bytecode
)";

std::string& python_folder() {
  static auto* folder = new std::string();
  return *folder;
}

// The loader's name may be a link: LD_PRELOAD cannot carry every path, and then names one in the cache.
std::string file_of(const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return "";
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(info.dli_fname, error);
  return error ? info.dli_fname : real.string();
}

std::string parent(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

template <typename Function>
Function python(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

using Object = void*;

bool set_text(Object dictionary, const char* key, const std::string& text) {
  const auto from_string = python<Object (*)(const char*)>("PyUnicode_FromString");
  const auto set_item = python<int (*)(Object, const char*, Object)>("PyDict_SetItemString");
  const auto release = python<void (*)(Object)>("Py_DecRef");
  Object value = from_string(text.c_str());
  if (value == nullptr) return false;
  const bool done = set_item(dictionary, key, value) == 0;
  release(value);
  return done;
}

bool run(Object module) {
  const auto new_dictionary = python<Object (*)()>("PyDict_New");
  const auto set_item = python<int (*)(Object, const char*, Object)>("PyDict_SetItemString");
  const auto builtins = python<Object (*)()>("PyEval_GetBuiltins");
  const auto execute = python<Object (*)(const char*, int, Object, Object)>("PyRun_String");
  const auto release = python<void (*)(Object)>("Py_DecRef");
  Object globals = new_dictionary();
  if (globals == nullptr) return false;
  Object result = nullptr;
  if (set_item(globals, "__builtins__", builtins()) == 0 && set_item(globals, "extension", module) == 0 &&
      set_text(globals, "folder", python_folder()) &&
      set_text(globals, "library", file_of(reinterpret_cast<const void*>(&extend_module)))) {
    result = execute(kBootstrap, kFileInput, globals, globals);
  }
  const bool done = result != nullptr;
  if (done) release(result);
  release(globals);
  return done;
}

}  // namespace

void locate_python_files(const void* anchor) {
  // PREFIX/lib/devsan/libdevsan.so and PREFIX/share/devsan/python
  python_folder() = parent(parent(parent(file_of(anchor)))) + "/share/devsan/python";
}

void extend_module(void* module) {
  const auto print_error = python<void (*)()>("PyErr_Print");
  if (print_error == nullptr || module == nullptr) return;
  if (!run(module)) print_error();
}

}  // namespace devsan::sim
