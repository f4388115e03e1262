// Sees what the program loads. The entries of entry_*.S ask here which function to go on to; before the answer, what
// earlier calls have brought is looked at, since a call that is jumped to cannot be seen returning.
#include <link.h>

#include <atomic>
#include <cerrno>

#include "preload/cuda_calls.h"
#include "preload/cuda_wrappers.h"
#include "preload/real_symbol.h"
#include "preload/session.h"
#include "preload/torch_search.h"
#include "trace/fixed_text.h"

namespace devsan {
namespace {

constinit RealSymbol g_dlopen("dlopen");
constinit RealSymbol g_dlmopen("dlmopen");
constinit RealSymbol g_dlsym("dlsym");
constinit RealSymbol g_dlvsym("dlvsym");
constinit RealSymbol g_cxa_atexit("__cxa_atexit");

constexpr char kTorchModuleInit[] = "PyInit__C";

constinit thread_local bool t_looking = false;  // what we do ourselves comes through here too

// Before torch: how many objects there were at the last look, so that one can be told to be older than torch.
constinit std::atomic<std::size_t> g_objects_before_torch{0};
constinit std::atomic<std::uint64_t> g_seen_added{0};
constinit std::atomic<std::uint64_t> g_seen_removed{0};

// What is asked of the loader.
struct Call {
  const void* code = nullptr;    // where it comes from: the caller, or the object whose destructor is registered
  const void* handle = nullptr;  // of the object in which a symbol is looked for
  bool importing_torch = false;  // Python is about to make torch's extension module
};

// When torch is mapped, its static initialisers may be still to run, in the very dlopen that this call is made in.
// Loading the hooks then would run them out of order. They are done when code that is linked with torch runs, for the
// loader initialises an object after those that it needs; and when code older than torch has a handle of such an
// object.
bool torch_is_initialised(const TorchSighting& seen, const Call& call) noexcept {
  if (!seen.code_found) return false;
  if (seen.code_uses_torch) return true;
  return seen.code_index < g_objects_before_torch.load(std::memory_order_relaxed) && leads_to_torch(call.handle);
}

void wait_for_torch(const Call& call) noexcept {
  const LoaderCounts counts = loader_counts();
  if (counts ==
      LoaderCounts{g_seen_added.load(std::memory_order_relaxed), g_seen_removed.load(std::memory_order_relaxed)}) {
    return;
  }
  const TorchSighting seen = look_for_torch(call.code);
  if (!seen.library.empty()) {
    if (torch_is_initialised(seen, call) && begin_starting()) start(seen, call.importing_torch);
    return;
  }
  g_objects_before_torch.store(seen.objects, std::memory_order_relaxed);
  g_seen_added.store(counts.added, std::memory_order_relaxed);
  g_seen_removed.store(counts.removed, std::memory_order_relaxed);
}

void look(const Call& call) noexcept {
  const Stage now = stage();
  if ((now != Stage::waiting && now != Stage::running) || t_looking) return;
  const int saved_errno = errno;
  t_looking = true;
  if (now == Stage::waiting) {
    wait_for_torch(call);
  } else {
    patch_new_objects();
  }
  t_looking = false;
  errno = saved_errno;
}

// A real handle is the loader's own record of the object. Torch's extension is torch/_C.<tag>.so.
bool is_torch_extension(void* handle) noexcept {
  if (handle == nullptr || handle == reinterpret_cast<void*>(-1)) return false;
  const std::string_view path = static_cast<const link_map*>(handle)->l_name;
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos || !path.substr(slash + 1).starts_with("_C.")) return false;
  return path.substr(0, slash).ends_with("/torch");
}

using ModuleInit = void*();
constinit std::atomic<ModuleInit*> g_torch_module_init{nullptr};

void* make_torch_module() {
  void* module = g_torch_module_init.load(std::memory_order_acquire)();
  if (module != nullptr) give_module_to_simulation(module);
  return module;
}

// Takes the place of dlsym(torch's extension, "PyInit__C").
void* find_torch_module_init(void* handle, const char* name) noexcept {
  auto* init = reinterpret_cast<ModuleInit*>(g_dlsym.as<void*(void*, const char*)>()(handle, name));
  if (init == nullptr) return nullptr;
  g_torch_module_init.store(init, std::memory_order_release);
  return reinterpret_cast<void*>(&make_torch_module);
}

// Take the place of dlsym and dlvsym for a call of CUDA's. What they find depends on the caller where the handle is a
// special one: RTLD_DEFAULT is looked up from here, which gives what it gives to any caller that looks in the global
// scope first, and RTLD_NEXT is left to the real function.
void* find_cuda_call(void* handle, const char* name) noexcept {
  return cuda::in_place_of(name, g_dlsym.as<void*(void*, const char*)>()(handle, name));
}

void* find_cuda_call_version(void* handle, const char* name, const char* version) noexcept {
  return cuda::in_place_of(name, g_dlvsym.as<void*(void*, const char*, const char*)>()(handle, name, version));
}

bool in_this_namespace(const void* code) noexcept {
  return look_for_torch(code).code_found;
}

bool gives_cuda_call(const void* handle, const char* name, RealSymbol& real, const void* caller) noexcept {
  if (!cuda::may_be_call(name) || stage() == Stage::off || cuda::find_call(name) == cuda::CallId::count) return false;
  if (handle == RTLD_NEXT || real.address() == nullptr) return false;
  if (handle != RTLD_DEFAULT) return true;
  // Found here and nowhere before: what a library that was loaded with RTLD_LOCAL finds beside it is not looked for.
  return in_this_namespace(caller) && g_dlsym.as<void*(void*, const char*)>()(RTLD_DEFAULT, name) != nullptr;
}

// Where the C library has no such function, nobody can have linked against it: only a weak reference leads here.
void* not_available() noexcept {
  return nullptr;
}

void* address_of(RealSymbol& symbol) noexcept {
  void* address = symbol.address();
  return address != nullptr ? address : reinterpret_cast<void*>(&not_available);
}

}  // namespace
}  // namespace devsan

extern "C" {

void* devsan_choose_dlopen(const char*, int, const void*, const void* caller) noexcept {
  devsan::look({.code = caller});
  return devsan::address_of(devsan::g_dlopen);
}

void* devsan_choose_dlmopen(long, const char*, int, const void* caller) noexcept {
  devsan::look({.code = caller});
  return devsan::address_of(devsan::g_dlmopen);
}

void* devsan_choose_dlsym(void* handle, const char* name, const void*, const void* caller) noexcept {
  const bool importing_torch =
      name != nullptr && devsan::same_text(name, devsan::kTorchModuleInit) && devsan::is_torch_extension(handle);
  devsan::look({caller, handle, importing_torch});
  if (importing_torch && devsan::simulation_wants_module()) {
    return reinterpret_cast<void*>(&devsan::find_torch_module_init);
  }
  if (devsan::gives_cuda_call(handle, name, devsan::g_dlsym, caller)) {
    return reinterpret_cast<void*>(&devsan::find_cuda_call);
  }
  return devsan::address_of(devsan::g_dlsym);
}

void* devsan_choose_dlvsym(void* handle, const char* name, const char*, const void* caller) noexcept {
  devsan::look({.code = caller, .handle = handle});
  if (devsan::gives_cuda_call(handle, name, devsan::g_dlvsym, caller)) {
    return reinterpret_cast<void*>(&devsan::find_cuda_call_version);
  }
  return devsan::address_of(devsan::g_dlvsym);
}

void* devsan_choose_cxa_atexit(void (*)(void*), void*, void* object, const void*) noexcept {
  devsan::look({.code = object});
  return devsan::address_of(devsan::g_cxa_atexit);
}

}  // extern "C"
