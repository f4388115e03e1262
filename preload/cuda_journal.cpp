#include "preload/cuda_journal.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/cuda_streams.h"
#include "preload/pinned_bytes.h"
#include "trace/clock.h"
#include "trace/fixed_text.h"

namespace devsan::cuda {
namespace {

constexpr std::size_t kUnknownDevice = 0;

struct ThreadNumber {
  std::uint64_t epoch;
  std::uint32_t tid;
};
constinit thread_local ThreadNumber t_number{0, 0};

std::uint32_t thread_number(std::uint64_t epoch) noexcept {
  if (t_number.epoch != epoch) t_number = {epoch, static_cast<std::uint32_t>(syscall(SYS_gettid))};
  return t_number.tid;
}

bool is_pinned(const Block& block) noexcept {
  return block.space == MemorySpace::pinned || block.space == MemorySpace::registered;
}

// What is in `place`, or what `make` gives. Where two threads make it at once the one that is late has made a record
// that stays at zero.
template <class Payload, class Make>
Payload* get(std::atomic<Payload*>& place, Make make) noexcept {
  Payload* there = place.load(std::memory_order_acquire);
  if (there != nullptr) return there;
  Payload* const made = make();
  if (made == nullptr || place.compare_exchange_strong(there, made, std::memory_order_acq_rel)) return made;
  return there;
}

}  // namespace

bool Journal::begin(trace::Recorder& recorder) noexcept {
  const std::uint64_t epoch = recorder.epoch_page()->epoch.load(std::memory_order_acquire);
  if (epoch == 0) return false;
  if (epoch_.load(std::memory_order_acquire) == epoch) return true;
  recorder_ = &recorder;
  return start_over(epoch);
}

// One thread does it, which takes microseconds, and the others wait for it. A turn that a thread of the parent held at
// the very fork is taken over.
bool Journal::start_over(std::uint64_t epoch) noexcept {
  const pid_t self = getpid();
  pid_t maker = maker_.load(std::memory_order_acquire);
  while (maker == self || !maker_.compare_exchange_strong(maker, self, std::memory_order_acq_rel)) {
    sched_yield();
    maker = maker_.load(std::memory_order_acquire);
  }
  const bool ready = epoch_.load(std::memory_order_acquire) == epoch || forget_everything();
  if (ready) epoch_.store(epoch, std::memory_order_release);
  maker_.store(0, std::memory_order_release);
  return ready;
}

bool Journal::forget_everything() noexcept {
  if (!ledger_.clear()) return false;
  streams.clear();
  g_pinned_bytes.store(0, std::memory_order_relaxed);
  for (auto& devices : counters_) {
    for (auto& variants : devices) {
      for (auto& counter : variants) {
        if (counter.load(std::memory_order_relaxed) != nullptr) counter.store(nullptr, std::memory_order_relaxed);
      }
    }
  }
  for (auto& spaces : memory_) {
    for (auto& memory : spaces) memory.store(nullptr, std::memory_order_relaxed);
  }
  ring_.store(nullptr, std::memory_order_relaxed);
  return true;
}

std::size_t Journal::index_of(int device) noexcept {
  return device >= 0 && device < static_cast<int>(kDevices) - 1 ? static_cast<std::size_t>(device) + 1 : kUnknownDevice;
}

// Ids of strings and devices stay valid in a forked child, whose trace has its parent's tables.
trace::DeviceSlot Journal::slot_of(int device) noexcept {
  const std::size_t index = index_of(device);
  if (index == kUnknownDevice) return trace::DeviceSlot::none;
  trace::DeviceSlot slot = slots_[index].load(std::memory_order_relaxed);
  if (slot != trace::DeviceSlot::none) return slot;
  FixedText<16> name("cuda:");
  slot = recorder_->intern_device(name.append_number(static_cast<std::uint64_t>(device)).view());
  slots_[index].store(slot, std::memory_order_relaxed);
  return slot;
}

trace::StringId Journal::name_of(CallId call) noexcept {
  auto& known = names_[static_cast<std::size_t>(call)];
  trace::StringId name = known.load(std::memory_order_relaxed);
  if (name != trace::StringId::none) return name;
  name = recorder_->intern_string(call_of(call).symbol);
  known.store(name, std::memory_order_relaxed);
  return name;
}

trace::DeviceCallPayload* Journal::counter_of(const Observation& seen) noexcept {
  const bool copy = call_of(seen.call).kind == DeviceCallKind::copy;
  const bool pageable = (seen.flags & trace::kPageableCall) != 0;
  const std::size_t variant =
      copy ? static_cast<std::size_t>(seen.direction) * 2 + (pageable ? 1 : 0) : static_cast<std::size_t>(seen.space);
  auto& place = counters_[static_cast<std::size_t>(seen.call)][index_of(seen.device)][variant];
  return get(place, [&] {
    trace::DeviceCallPayload fixed{};
    fixed.call = name_of(seen.call);
    fixed.kind = call_of(seen.call).kind;
    fixed.device = slot_of(seen.device);
    fixed.space = seen.space;
    fixed.direction = seen.direction;
    fixed.flags = seen.flags & (trace::kAsyncCall | trace::kPageableCall);
    return recorder_->add_device_call(fixed);
  });
}

trace::DeviceMemoryPayload* Journal::memory_of(const Block& block) noexcept {
  return get(memory_[index_of(block.device)][static_cast<std::size_t>(block.space)], [&] {
    trace::DeviceMemoryPayload fixed{};
    fixed.device = slot_of(block.device);
    fixed.space = block.space;
    return recorder_->add_device_memory(fixed);
  });
}

trace::CallRingPayload* Journal::ring() noexcept {
  return get(ring_, [this] { return recorder_->add_call_ring(); });
}

void Journal::note(const Observation& seen) noexcept {
  const bool captured = (seen.flags & trace::kCapturedCall) != 0;
  const bool waited = (seen.flags & trace::kHostWaited) != 0;
  trace::count_call(counter_of(seen), {seen.failed, captured, waited, seen.bytes, seen.wait_ns});
  trace::DeviceCallEvent event{};
  event.time_ns = trace::wall_clock_ns();
  event.address = seen.address;
  event.bytes = seen.bytes;
  event.context = seen.context;
  event.stream = seen.stream;
  event.tid = thread_number(epoch_.load(std::memory_order_relaxed));
  event.step = recorder_->step();
  event.call = name_of(seen.call);
  event.result = static_cast<std::uint16_t>(seen.result);
  event.device = slot_of(seen.device);
  event.kind = call_of(seen.call).kind;
  event.flags = seen.flags;
  event.space = seen.space;
  event.direction = seen.direction;
  trace::note_call(ring(), event);
}

void Journal::allocated(const Block& block, bool remembered) noexcept {
  trace::DeviceMemoryPayload* const memory = memory_of(block);
  if (remembered) {
    trace::count_allocated(memory, block.bytes, recorder_->step());
    if (is_pinned(block)) g_pinned_bytes.fetch_add(block.bytes, std::memory_order_relaxed);
  } else if (memory != nullptr) {
    trace::add_to(memory->untracked, 1);
  }
}

void Journal::released(const Block& block) noexcept {
  if (is_pinned(block)) g_pinned_bytes.fetch_sub(block.bytes, std::memory_order_relaxed);
  trace::count_released(memory_of(block), block.bytes);
}

}  // namespace devsan::cuda
