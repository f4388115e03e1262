#include "preload/cuda_driver.h"

#include <link.h>

#include <atomic>
#include <cstddef>

#include "preload/elf_image.h"

namespace devsan::cuda {
namespace {

constexpr int kSuccess = 0;
constexpr int kCaptureIsActive = 1;            // CU_STREAM_CAPTURE_STATUS_ACTIVE
constexpr std::uint64_t kLegacyStream = 1;     // CU_STREAM_LEGACY
constexpr std::uint64_t kPerThreadStream = 2;  // CU_STREAM_PER_THREAD
constexpr int kMemoryType = 2;                 // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr int kDeviceOrdinal = 9;              // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
constexpr unsigned kHostMemory = 1;            // CU_MEMORYTYPE_HOST

// A function of the driver that may be missing from an older one.
template <typename... Arguments>
class Question {
 public:
  explicit constexpr Question(const char* name) noexcept : name_(name) {}
  void find_in(const ElfImage& driver) noexcept {
    address_.store(driver.find_address(name_), std::memory_order_release);
  }
  // Whether it was answered.
  bool ask(Arguments... arguments) const noexcept {
    auto* function = reinterpret_cast<int (*)(Arguments...)>(address_.load(std::memory_order_acquire));
    return function != nullptr && function(arguments...) == kSuccess;
  }

 private:
  const char* name_;
  std::atomic<void*> address_{nullptr};
};

constinit Question<void**> g_context("cuCtxGetCurrent");
constinit Question<int*> g_device("cuCtxGetDevice");
constinit Question<std::uint64_t, int*> g_stream_device("cuStreamGetDevice");
constinit Question<std::uint64_t, void**> g_stream_context("cuStreamGetCtx");
constinit Question<std::uint64_t, int*> g_capturing("cuStreamIsCapturing");
constinit Question<void*, int, std::uint64_t> g_pointer("cuPointerGetAttribute");
// Of memory that the driver does not know this one says so without an error, which a tool that looks for errors would
// tell.
constinit Question<unsigned, const int*, void**, std::uint64_t> g_any_pointer("cuPointerGetAttributes");
constinit std::atomic<const void*> g_driver{nullptr};  // where its object lies

int take_functions(dl_phdr_info* info, std::size_t, void* function) noexcept {
  if (!holds(*info, function)) return 0;
  const ElfImage driver(*info);
  if (driver.dynamic() == nullptr || g_driver.exchange(driver.dynamic()) == driver.dynamic()) return 1;
  g_context.find_in(driver);
  g_device.find_in(driver);
  g_stream_device.find_in(driver);
  g_stream_context.find_in(driver);
  g_capturing.find_in(driver);
  g_pointer.find_in(driver);
  g_any_pointer.find_in(driver);
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

bool is_default(std::uint64_t stream) noexcept {
  return stream == 0 || stream == kLegacyStream || stream == kPerThreadStream;
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

std::uint64_t current_context() noexcept {
  void* context = nullptr;
  return g_context.ask(&context) ? reinterpret_cast<std::uintptr_t>(context) : 0;
}

int current_device() noexcept {
  int device = kNoDevice;
  return g_device.ask(&device) ? device : kNoDevice;
}

// Of an older driver only the context can be had, and that of another device than the current one has no number.
int device_of_stream(std::uint64_t stream, bool) noexcept {
  if (is_default(stream)) return current_device();
  int device = kNoDevice;
  if (g_stream_device.ask(stream, &device)) return device;
  void* context = nullptr;
  if (!g_stream_context.ask(stream, &context)) return kNoDevice;
  return reinterpret_cast<std::uintptr_t>(context) == current_context() ? current_device() : kNoDevice;
}

// The legacy stream cannot be captured, and to ask about it while another stream is would be an error.
bool is_capturing(std::uint64_t stream, bool per_thread) noexcept {
  if (stream == kLegacyStream || (stream == 0 && !per_thread)) return false;
  int status = 0;
  return g_capturing.ask(stream == 0 ? kPerThreadStream : stream, &status) && status == kCaptureIsActive;
}

int device_of_memory(std::uint64_t address) noexcept {
  int device = kNoDevice;
  return g_pointer.ask(&device, kDeviceOrdinal, address) ? device : kNoDevice;
}

Placement placement_of(std::uint64_t address) noexcept {
  // Without a context the driver knows of no memory at all.
  if (current_context() == 0) return Placement::unknown;
  unsigned type = 0;
  void* answer = &type;
  if (!g_any_pointer.ask(1, &kMemoryType, &answer, address)) return Placement::unknown;
  if (type == 0) return Placement::pageable;
  return type == kHostMemory ? Placement::pinned : Placement::device;
}

}  // namespace devsan::cuda
