// The functions that the Python face calls through ctypes. None lets an exception out: they return 0, or write what
// went wrong into `error` and return what kind of failure it was, which native.py turns into an exception.
#include <c10/core/StorageImpl.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <string_view>

#include "sim/allocator.h"
#include "sim/capture.h"
#include "sim/collectives.h"
#include "sim/devices.h"
#include "sim/kernel_words.h"
#include "sim/random.h"
#include "trace/not_simulated.h"

#define DEVSAN_PYTHON_CALL extern "C" __attribute__((visibility("default")))

namespace devsan::sim {
namespace {

// A failure of CUDA's is its code, which is above 0.
constexpr int kFailed = -1;
constexpr int kOutOfMemory = -2;

void report(std::string_view text, char* error, std::size_t size) {
  const std::size_t length = std::min(text.size(), size - 1);
  std::memcpy(error, text.data(), length);
  error[length] = '\0';
}

template <typename Action>
int guarded(char* error, std::size_t size, Action action) {
  try {
    action();
    return 0;
  } catch (const c10::AcceleratorError& failure) {
    report(failure.what_without_backtrace(), error, size);
    return failure.get_error_code();
  } catch (const c10::OutOfMemoryError& failure) {
    report(failure.what_without_backtrace(), error, size);
    return kOutOfMemory;
  } catch (const c10::Error& failure) {
    report(failure.what_without_backtrace(), error, size);
    return kFailed;
  } catch (const std::exception& failure) {
    report(failure.what(), error, size);
    return kFailed;
  }
}

}  // namespace
}  // namespace devsan::sim

DEVSAN_PYTHON_CALL void devsan_sim_next_generator_is_default(int is_default) {
  devsan::sim::next_generator_is_default(is_default != 0);
}

DEVSAN_PYTHON_CALL void devsan_sim_restore_context() {
  devsan::sim::restore_context();
}

DEVSAN_PYTHON_CALL int devsan_sim_not_covered(const char* what, char* error, std::size_t size) {
  return devsan::sim::guarded(error, size,
                              [&] { TORCH_CHECK_NOT_IMPLEMENTED(false, devsan::trace::kNotSimulated, what); });
}

DEVSAN_PYTHON_CALL int devsan_sim_resize_storage(void* storage, std::size_t bytes, char* error, std::size_t size) {
  return devsan::sim::guarded(error, size,
                              [&] { devsan::sim::resize_storage(*static_cast<c10::StorageImpl*>(storage), bytes); });
}

DEVSAN_PYTHON_CALL int devsan_sim_begin_capture(char* error, std::size_t size) {
  return devsan::sim::guarded(error, size, [] { devsan::sim::begin_capture(); });
}

// The caller owns *graph.
DEVSAN_PYTHON_CALL int devsan_sim_end_capture(void** graph, char* error, std::size_t size) {
  return devsan::sim::guarded(error, size, [&] { *graph = devsan::sim::end_capture().release(); });
}

DEVSAN_PYTHON_CALL int devsan_sim_is_capturing() {
  return devsan::sim::is_capturing() ? 1 : 0;
}

DEVSAN_PYTHON_CALL int devsan_sim_replay(void* graph, char* error, std::size_t size) {
  return devsan::sim::guarded(error, size, [&] { devsan::sim::replay(*static_cast<devsan::sim::Graph*>(graph)); });
}

DEVSAN_PYTHON_CALL void devsan_sim_destroy_graph(void* graph) {
  delete static_cast<devsan::sim::Graph*>(graph);
}

DEVSAN_PYTHON_CALL int devsan_sim_wrap_backend(const char* group_name, const char* backend_name, char* error,
                                               std::size_t size) {
  return devsan::sim::guarded(error, size, [&] { devsan::sim::wrap_cpu_backend(group_name, backend_name); });
}
