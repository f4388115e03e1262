#include "preload/cuda_wrappers.h"

#include <link.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "preload/cuda_calls.h"
#include "preload/cuda_driver.h"
#include "preload/cuda_journal.h"
#include "preload/cuda_reading.h"
#include "preload/cuda_telling.h"
#include "preload/elf_image.h"
#include "preload/session.h"

namespace devsan::cuda {
namespace {

using Word = std::uint64_t;

// What a call takes on the stack, at most: the 64 bytes of a CUipcMemHandle. A wrapper of a call that takes less reads
// on into its caller's frame and passes that along, where nobody looks at it.
struct StackWords {
  Word words[8];
};

using InRegisters = Word (*)(Word, Word, Word, Word, Word, Word);
using OnStack = Word (*)(Word, Word, Word, Word, Word, Word, StackWords);

// A process may have several libraries with a call of that name: two runtimes, or a tool that stands before one.
constexpr std::size_t kInstances = 4;

constinit std::atomic<void*> g_real[kCallCount][kInstances] = {};
constinit Journal g_journal;
constinit thread_local bool t_inside = false;

Word pass_on(const Call& call, void* real, const Word* in, const StackWords* stack) noexcept {
  if (call.arguments.on_stack) {
    return reinterpret_cast<OnStack>(real)(in[0], in[1], in[2], in[3], in[4], in[5], *stack);
  }
  return reinterpret_cast<InRegisters>(real)(in[0], in[1], in[2], in[3], in[4], in[5]);
}

constexpr Word kPerThreadStreams = 2;  // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM

// Gives wrappers to whoever asks the driver for its functions: the runtime, above all.
void replace_entry_point(const Word* in) noexcept {
  const auto* const name = reinterpret_cast<const char*>(in[0]);
  auto* const place = reinterpret_cast<void**>(in[1]);
  if (!may_be_call(name) || place == nullptr || *place == nullptr) return;
  const auto version = static_cast<int>(in[2]);
  const CallId id = find_entry_point(name, version, (in[3] & kPerThreadStreams) != 0);
  if (id == CallId::count) return;
  const char* const symbol = call_of(id).symbol;
  // A driver that is newer than the list may mean another function by the name, with other arguments.
  if (version > kKnownVersion && exported_beside(*place, symbol) != *place) return;
  *place = in_place_of(symbol, *place);
}

Word watch(CallId id, void* real, const Word* in, const StackWords* stack) noexcept {
  const Call& call = call_of(id);
  t_inside = true;
  Watched watched(g_journal, id, in, stack != nullptr ? stack->words : nullptr);
  const Word result = pass_on(call, real, in, stack);
  const int error = errno;
  watched.finish(static_cast<std::uint32_t>(result));
  errno = error;
  t_inside = false;
  return result;
}

// A forked child begins to record with its first operator, or with the first call that uses a device: what is done to a
// stream is of no use to who has not seen how the stream was made.
bool records(const Call& call) noexcept {
  if (g_journal.begin(recorder())) return true;
  const bool uses_device = call.kind == DeviceCallKind::create_stream || call.kind == DeviceCallKind::allocate ||
                           call.kind == DeviceCallKind::copy;
  if (!uses_device) return false;
  begin_recording();
  return g_journal.begin(recorder());
}

Word call_real(CallId id, std::size_t instance, const Word* in, const StackWords* stack) noexcept {
  const Call& call = call_of(id);
  void* const real = g_real[static_cast<std::size_t>(id)][instance].load(std::memory_order_acquire);
  if (call.arguments.shape == Shape::entry_point) {
    const Word result = pass_on(call, real, in, stack);
    if (static_cast<std::uint32_t>(result) == 0) replace_entry_point(in);
    return result;
  }
  if (t_inside || !records(call)) return pass_on(call, real, in, stack);
  return watch(id, real, in, stack);
}

template <std::size_t kId, std::size_t kInstance>
Word wrapper(Word a, Word b, Word c, Word d, Word e, Word f) {
  const Word in[] = {a, b, c, d, e, f};
  return call_real(static_cast<CallId>(kId), kInstance, in, nullptr);
}

template <std::size_t kId, std::size_t kInstance>
Word wrapper_with_stack(Word a, Word b, Word c, Word d, Word e, Word f, StackWords stack) {
  const Word in[] = {a, b, c, d, e, f};
  return call_real(static_cast<CallId>(kId), kInstance, in, &stack);
}

template <std::size_t kId, std::size_t kInstance>
void* wrapper_address() noexcept {
  if constexpr (kCalls[kId].arguments.on_stack) {
    return reinterpret_cast<void*>(&wrapper_with_stack<kId, kInstance>);
  } else {
    return reinterpret_cast<void*>(&wrapper<kId, kInstance>);
  }
}

using AddressOf = void* (*)() noexcept;

template <std::size_t... kPairs>
constexpr std::array<AddressOf, sizeof...(kPairs)> addresses(std::index_sequence<kPairs...>) {
  return {&wrapper_address<kPairs / kInstances, kPairs % kInstances>...};
}
constexpr auto kWrappers = addresses(std::make_index_sequence<kCallCount * kInstances>());

void* wrapper_of(std::size_t call, std::size_t instance) noexcept {
  return kWrappers[call * kInstances + instance]();
}

bool is_mapped(const void* address) noexcept {
  struct Search {
    const void* address;
    bool found;
  } search{address, false};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto* const wanted = static_cast<Search*>(data);
        wanted->found = holds(*info, wanted->address);
        return wanted->found ? 1 : 0;
      },
      &search);
  return search.found;
}

// The wrapper that leads to `real`; `real` itself when all are taken by libraries that are still there.
void* wrapper_for(std::size_t call, void* real) noexcept {
  for (std::size_t i = 0; i < kInstances; ++i) {
    void* const there = g_real[call][i].load(std::memory_order_acquire);
    if (there == real || wrapper_of(call, i) == real) return wrapper_of(call, i);
  }
  for (std::size_t i = 0; i < kInstances; ++i) {
    void* there = g_real[call][i].load(std::memory_order_acquire);
    if (there != nullptr && is_mapped(there)) continue;
    if (g_real[call][i].compare_exchange_strong(there, real, std::memory_order_acq_rel) || there == real) {
      return wrapper_of(call, i);
    }
  }
  return real;
}

// What the loader would bind a symbol to that several objects define depends on scopes that cannot be seen from here.
struct Candidates {
  const char* symbol;
  const ElfImage* object;
  void* only = nullptr;    // of the only object that defines it
  void* needed = nullptr;  // of an object that the calling one names
  std::size_t count = 0;
};

std::string_view file_name(const char* path) noexcept {
  const std::string_view all = path;
  const std::size_t slash = all.rfind('/');
  return slash == std::string_view::npos ? all : all.substr(slash + 1);
}

int consider(dl_phdr_info* info, std::size_t, void* data) noexcept {
  auto& candidates = *static_cast<Candidates*>(data);
  const ElfImage image(*info);
  void* const found = image.dynamic() != nullptr ? image.find_address(candidates.symbol) : nullptr;
  if (found == nullptr) return 0;
  ++candidates.count;
  candidates.only = found;
  const std::string_view name = file_name(info->dlpi_name);
  const bool needed = candidates.object->any_needed([&](std::string_view other) { return other == name; });
  if (needed && candidates.needed == nullptr) candidates.needed = found;
  return 0;
}

}  // namespace

void* in_place_of(const char* symbol, void* real) noexcept {
  const CallId id = find_call(symbol);
  if (id == CallId::count || real == nullptr) return real;
  if (!call_of(id).runtime) use_driver_of(real);
  return wrapper_for(static_cast<std::size_t>(id), real);
}

void* in_place_of_unbound(const char* symbol, const ElfImage& object) noexcept {
  if (find_call(symbol) == CallId::count) return nullptr;
  Candidates candidates{symbol, &object};
  dl_iterate_phdr(&consider, &candidates);
  if (candidates.count == 1) return in_place_of(symbol, candidates.only);
  return candidates.needed != nullptr ? in_place_of(symbol, candidates.needed) : nullptr;
}

}  // namespace devsan::cuda
