#include "preload/cuda_driver.h"

#include <link.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>

#include "preload/cuda_streams.h"
#include "preload/elf_image.h"

namespace devsan::cuda {
namespace {

constexpr std::uint32_t kSuccess = 0;
// CUDA_ERROR_NOT_INITIALIZED and CUDA_ERROR_DEINITIALIZED, and the runtime's errors of the same numbers: any question
// would fail as well.
constexpr std::uint32_t kNotInitialized = 3;
constexpr std::uint32_t kDeinitialized = 4;
constexpr int kMemoryType = 2;          // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr int kDeviceOrdinal = 9;       // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
constexpr unsigned kHostMemory = 1;     // CU_MEMORYTYPE_HOST
constexpr unsigned kUnknownMemory = 0;  // what is answered for memory that the driver does not know

// A function of the driver that may be missing from an older one.
template <typename... Arguments>
class Question {
 public:
  explicit constexpr Question(const char* symbol) noexcept : symbol_(symbol) {}
  void find_in(const ElfImage& driver) noexcept {
    address_.store(driver.find_address(symbol_), std::memory_order_release);
  }
  // Whether it was answered.
  bool ask(Arguments... arguments) const noexcept {
    auto* function = reinterpret_cast<std::uint32_t (*)(Arguments...)>(address_.load(std::memory_order_acquire));
    return function != nullptr && function(arguments...) == kSuccess;
  }

 private:
  const char* symbol_;
  std::atomic<void*> address_{nullptr};
};

#define DEVSAN_CUDA_QUESTION(name, symbol, ...) constinit Question<__VA_ARGS__> g_##name(#symbol);
#include "preload/cuda_questions.def"
#undef DEVSAN_CUDA_QUESTION

constinit std::atomic<const void*> g_driver{nullptr};  // where its object lies
constinit std::atomic<pid_t> g_initialized_in{0};      // the process that it has served
constinit thread_local Current t_current;              // as it was answered last

int take_functions(dl_phdr_info* info, std::size_t, void* function) noexcept {
  if (!holds(*info, function)) return 0;
  const ElfImage driver(*info);
  if (driver.dynamic() == nullptr || g_driver.exchange(driver.dynamic()) == driver.dynamic()) return 1;
#define DEVSAN_CUDA_QUESTION(name, symbol, ...) g_##name.find_in(driver);
#include "preload/cuda_questions.def"
#undef DEVSAN_CUDA_QUESTION
  return 1;
}

struct Export {
  const void* function;
  const char* symbol;
  void* found;
};

int find_export(dl_phdr_info* info, std::size_t, void* data) noexcept {
  auto* const wanted = static_cast<Export*>(data);
  if (!holds(*info, wanted->function)) return 0;
  const ElfImage library(*info);
  if (library.dynamic() != nullptr) wanted->found = library.find_address(wanted->symbol);
  return 1;
}

struct Pointer {
  unsigned type = kUnknownMemory;
  int device = kNoDevice;
};

// Without a context the driver knows of no memory at all.
bool ask_of_pointer(std::uint64_t address, Pointer* pointer) noexcept {
  if (streams.any_captured() || t_current.context == 0) return false;
  constexpr int kAttributes[] = {kMemoryType, kDeviceOrdinal};
  void* answers[] = {&pointer->type, &pointer->device};
  return g_pointer_attributes.ask(2, kAttributes, answers, address);
}

}  // namespace

void use_driver_of(const void* function) noexcept {
  dl_iterate_phdr(&take_functions, const_cast<void*>(function));
}

void* exported_beside(const void* function, const char* symbol) noexcept {
  Export wanted{function, symbol, nullptr};
  dl_iterate_phdr(&find_export, &wanted);
  return wanted.found;
}

Current current_after(std::uint32_t result) noexcept {
  if (result == kNotInitialized || result == kDeinitialized) return {};
  void* answer = nullptr;
  if (!g_current_context.ask(&answer)) return {};
  const auto context = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(answer));
  if (result != kSuccess) return {context, context == t_current.context ? t_current.device : kNoDevice};
  t_current = {context, kNoDevice};
  if (context != 0 && !g_current_device.ask(&t_current.device)) t_current.device = kNoDevice;
  if (g_initialized_in.load(std::memory_order_relaxed) == 0)
    g_initialized_in.store(::getpid(), std::memory_order_relaxed);
  return t_current;
}

Placement placement_of(std::uint64_t address) noexcept {
  Pointer pointer;
  if (!ask_of_pointer(address, &pointer)) return Placement::unknown;
  if (pointer.type == kUnknownMemory) return Placement::pageable;
  return pointer.type == kHostMemory ? Placement::pinned : Placement::device;
}

int device_of_memory(std::uint64_t address) noexcept {
  Pointer pointer;
  return ask_of_pointer(address, &pointer) && pointer.type != kUnknownMemory ? pointer.device : kNoDevice;
}

std::uint64_t capacity_of_device(int device) noexcept {
  if (streams.any_captured() || g_initialized_in.load(std::memory_order_relaxed) != ::getpid()) return 0;
  int handle = 0;
  std::size_t bytes = 0;
  return g_device_handle.ask(&handle, device) && g_total_memory.ask(&bytes, handle) ? bytes : 0;
}

}  // namespace devsan::cuda
