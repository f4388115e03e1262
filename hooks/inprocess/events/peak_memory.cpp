#include "hooks/inprocess/events/peak_memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <new>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hooks/inprocess/bridge/live_storages.h"
#include "hooks/inprocess/bridge/memory_samples.h"
#include "hooks/inprocess/common/busy.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/common/thread_state.h"
#include "hooks/inprocess/common/turn.h"
#include "hooks/inprocess/events/live_owners.h"
#include "hooks/inprocess/interpreter/python_api.h"
#include "hooks/inprocess/provenance/large_page.h"
#include "trace/clock.h"
#include "trace/memory_series.h"

namespace devsan::hooks {

namespace {

using trace::DeviceSlot;
using trace::LiveKind;
using trace::PeakMoment;

constexpr std::int64_t kInterval = 20'000'000;  // nanoseconds from one backward that is looked at to the next
constexpr std::uint32_t kPeakLooksInTurn = 3;   // the first backwards of a process are all looked at
// Going through all storages comes when it is due for the first few times. From one to the next, as many times what the
// last one took.
constexpr std::uint32_t kWalksInTurn = 8;
constexpr std::int64_t kWalkCostFactor = 1000;
// How much more has to be in use than what is known: a fiftieth before storages are gone through, a hundredth before
// what was found takes the place of that.
constexpr std::uint64_t kWorthAWalk = 50;
constexpr std::uint64_t kWorthKeeping = 100;
constexpr std::size_t kUses = 64;

bool exceeds(std::uint64_t bytes, std::uint64_t known, std::uint64_t part) noexcept {
  return bytes > known + known / part;
}

std::size_t index_of(DeviceSlot slot) noexcept {
  return static_cast<std::size_t>(slot) % trace::kMaxDevices;
}

struct Storage {
  const void* address;
  trace::LineageId value;
  std::uint64_t bytes;
};

// All storages at one moment.
class Look final : public LiveStorageVisitor {
 public:
  // False where the sizes of storages cannot be read.
  bool take(PeakMoment at) {
    moment = at;
    time_ns = trace::wall_clock_ns();
    step = runtime.step.load(std::memory_order_relaxed);
    return visit_live_storages(*this);
  }

  void storage(const void* storage, trace::LineageId node, std::uint64_t size) noexcept override {
    if (size == 0) return;
    try {
      storages.push_back({storage, node, size});
      listed[index_of(runtime.recorder->lineage(node).device)] += size;
    } catch (const std::bad_alloc&) {  // it is a look at most of them
    }
  }

  PeakMoment moment = PeakMoment::none;
  std::int64_t time_ns = 0;
  std::uint32_t step = 0;
  std::vector<Storage> storages;
  std::array<std::uint64_t, trace::kMaxDevices> listed{};
  std::array<DeviceBytes, trace::kMaxDevices> bytes{};
  std::array<bool, trace::kMaxDevices> wanted{};  // of which devices it is the look that counts
};

struct Device {
  std::uint64_t kept = 0;  // bytes in use when it was looked at last
  bool asked = false;      // that is what the allocator says; else the sum of storages
  std::uint64_t peak = 0;
  std::uint32_t peak_step = 0;
  bool in_backward = false;
  trace::PeakMemoryPayload* record = nullptr;
};

// What the storages of a look are. None where no objects were searched.
class Kinds {
 public:
  explicit Kinds(const LiveOwners* owners, trace::SiteId backward = trace::SiteId::none)
      : owners_(owners), backward_(backward) {}

  LiveKind of(const Storage& storage, PeakMoment moment) const {
    if (owners_ == nullptr) return LiveKind::unknown;
    // What was there when the backward began and has gone with it was kept by the graph. Something else may lie there.
    const bool gone = origin_table().find(storage.address) != storage.value;
    if (gone) return is_input(storage.value, false) ? LiveKind::data : LiveKind::activation;
    if (const auto owner = owners_->owner_of(storage.address, storage.value)) return owner->kind;
    const trace::LineageNode made = runtime.recorder->lineage(storage.value);
    if (!owners_->complete() || made.how != trace::How::derived) return LiveKind::unknown;
    // The backward's own results are on their way to the program. Threads of the engine have no lines of their own.
    const bool by_backward = made.site == backward_ || made.site == trace::SiteId::none;
    if (moment == PeakMoment::backward_ended && by_backward) return LiveKind::gradient;
    return LiveKind::activation;  // a graph is kept for another backward
  }

 private:
  const LiveOwners* owners_;
  trace::SiteId backward_;
};

// Of one process; a forked child begins anew.
class Watch {
 public:
  void before_backward() {
    start_in_this_process();
    if (is_watched_by(&thread_state())) watched_by_ = nullptr;  // its last backward has failed
    const std::int64_t now = trace::clock_ns(CLOCK_MONOTONIC);
    if (looks_ >= kPeakLooksInTurn && now < next_look_) return;
    open_ = Look();
    next_look_ = now + kInterval;
    ++looks_;
    watched_by_ = &thread_state();
    ask(false);
    if (is_worth_a_walk(now)) take(open_, PeakMoment::backward_begins, now);
    write(open_, Kinds(nullptr));
  }

  void after_backward(const void* thread, trace::SiteId backward) {
    watched_by_ = nullptr;
    if (epoch_ != runtime.epoch_page->epoch.load(std::memory_order_relaxed)) return;
    const std::int64_t begin = trace::clock_ns(CLOCK_MONOTONIC);
    ask(true);
    Look last;
    if (is_worth_a_walk(begin)) take(last, PeakMoment::backward_ended, begin);
    for (std::size_t slot = 0; slot < trace::kMaxDevices; ++slot)
      open_.wanted[slot] = open_.wanted[slot] && !last.wanted[slot];
    explain(last, thread, backward);
    open_ = Look();
    const std::int64_t now = trace::clock_ns(CLOCK_MONOTONIC);
    if (walks_ >= kWalksInTurn) next_walk_ = std::max(next_walk_, now + (now - begin) * kWalkCostFactor);
  }

  bool is_watched_by(const ThreadState* thread) const noexcept { return watched_by_ == thread; }

 private:
  void start_in_this_process() {
    const std::uint64_t here = runtime.epoch_page->epoch.load(std::memory_order_relaxed);
    if (std::exchange(epoch_, here) == here) return;
    devices_.fill({});
    looks_ = walks_ = 0;
    next_look_ = next_walk_ = 0;
    host_bytes_ = 0;
  }

  void ask(bool in_backward) {
    count_ = devices_in_use(uses_);
    for (const DeviceUse& use : uses()) {
      Device& device = devices_[index_of(use.device)];
      device.asked = true;
      if (use.peak <= device.peak) continue;
      device.peak = use.peak;
      device.peak_step = runtime.step.load(std::memory_order_relaxed);
      device.in_backward = in_backward;
      tell_peak(device);
    }
  }

  static void tell_peak(const Device& device) noexcept {
    if (device.record == nullptr) return;
    trace::atom(device.record->peak_step).store(device.peak_step, std::memory_order_relaxed);
    trace::atom(device.record->in_backward).store(device.in_backward ? 1 : 0, std::memory_order_relaxed);
    trace::atom(device.record->peak).store(device.peak, std::memory_order_relaxed);
  }

  bool is_worth_a_walk(std::int64_t now) const {
    if (now < next_walk_) return false;
    if (looks_ <= kPeakLooksInTurn) return true;
    for (const DeviceUse& use : uses()) {
      if (exceeds(use.bytes.allocated, devices_[index_of(use.device)].kept, kWorthAWalk)) return true;
    }
    return exceeds(own_bytes(), host_bytes_, kWorthAWalk);
  }

  void take(Look& look, PeakMoment moment, std::int64_t begin) {
    if (!look.take(moment)) return;
    for (const DeviceUse& use : uses()) look.bytes[index_of(use.device)] = use.bytes;
    for (std::size_t slot = 0; slot < trace::kMaxDevices; ++slot) {
      Device& device = devices_[slot];
      const std::uint64_t in_use = device.asked ? look.bytes[slot].allocated : look.listed[slot];
      if (!exceeds(in_use, device.kept, kWorthKeeping)) continue;
      device.kept = in_use;
      look.wanted[slot] = true;
    }
    host_bytes_ = own_bytes();
    ++walks_;
    if (walks_ >= kWalksInTurn) next_walk_ = begin + (trace::clock_ns(CLOCK_MONOTONIC) - begin) * kWalkCostFactor;
  }

  // What is to be kept of two looks, with what each storage is.
  void explain(const Look& last, const void* thread, trace::SiteId backward) {
    const bool any = is_wanted(open_) || is_wanted(last);
    if (!any) return;
    if (thread == nullptr) return write(last, Kinds(nullptr));
    const PythonSection section;
    const Busy busy(thread_state());
    LiveOwners owners;
    owners.look(thread);
    write(open_, Kinds(&owners, backward));
    write(last, Kinds(&owners, backward));
  }

  static bool is_wanted(const Look& look) noexcept { return std::ranges::find(look.wanted, true) != look.wanted.end(); }

  void write(const Look& look, const Kinds& kinds) {
    for (std::size_t slot = 0; slot < trace::kMaxDevices; ++slot) {
      if (look.wanted[slot]) write(look, kinds, static_cast<DeviceSlot>(slot));
    }
  }

  void write(const Look& look, const Kinds& kinds, DeviceSlot slot) {
    Device& device = devices_[index_of(slot)];
    if (device.record == nullptr) {
      device.record = runtime.recorder->add_peak_memory(slot);
      tell_peak(device);
    }
    if (device.record == nullptr) return;
    trace::LiveAtPeak told{};
    told.time_ns = look.time_ns;
    told.allocated = look.bytes[index_of(slot)].allocated;
    told.reserved = look.bytes[index_of(slot)].reserved;
    told.step = look.step;
    told.moment = look.moment;
    const std::vector<trace::LiveMemoryRow> rows = rows_of(look, kinds, slot, told);
    told.rows = static_cast<std::uint16_t>(std::min(rows.size(), trace::kPeakRows));
    std::copy_n(rows.begin(), told.rows, told.lines.begin());
    keep_sources_of({told.lines.data(), told.rows});
    trace::store_look(device.record, told);
  }

  // The largest first. Sums them up in `told`.
  static std::vector<trace::LiveMemoryRow> rows_of(const Look& look, const Kinds& kinds, DeviceSlot slot,
                                                   trace::LiveAtPeak& told) {
    std::unordered_map<std::uint64_t, trace::LiveMemoryRow> rows;
    for (const Storage& storage : look.storages) {
      const trace::LineageNode made = runtime.recorder->lineage(storage.value);
      if (made.device != slot) continue;
      const LiveKind kind = kinds.of(storage, look.moment);
      const std::uint64_t key = std::uint64_t(made.site) << 24 | std::uint64_t(made.op) << 8 | std::uint64_t(kind);
      trace::LiveMemoryRow& row = rows[key];
      row.site = made.site;
      row.op = made.op;
      row.kind = kind;
      row.bytes += storage.bytes;
      ++row.count;
      trace::LiveKindSum& sum = told.kinds[static_cast<std::size_t>(kind)];
      sum.bytes += storage.bytes;
      ++sum.count;
      told.listed += storage.bytes;
    }
    std::vector<trace::LiveMemoryRow> sorted;
    sorted.reserve(rows.size());
    for (const auto& [key, row] : rows) sorted.push_back(row);
    std::ranges::sort(sorted, std::greater<>(), &trace::LiveMemoryRow::bytes);
    return sorted;
  }

  std::span<const DeviceUse> uses() const noexcept { return std::span(uses_).first(count_); }

  std::uint64_t epoch_ = 0;
  std::array<Device, trace::kMaxDevices> devices_{};
  std::array<DeviceUse, kUses> uses_{};
  std::size_t count_ = 0;
  std::uint32_t looks_ = 0;
  std::uint32_t walks_ = 0;
  std::int64_t next_look_ = 0;
  std::int64_t next_walk_ = 0;
  std::uint64_t host_bytes_ = 0;  // of the process, when storages were gone through last
  Look open_;                     // from the begin of the backward that runs
  std::atomic<const ThreadState*> watched_by_{nullptr};
};

// Never destroyed: threads may look until the very end.
Watch& watch() {
  alignas(Watch) static std::byte memory[sizeof(Watch)];
  static Watch* const made = new (memory) Watch;
  return *made;
}

constinit std::atomic_flag peak_looking{};

template <class Work>
void take_turn(Work work) noexcept {
  const Turn turn(peak_looking);
  if (!turn.taken()) return;
  try {
    work();
  } catch (const std::exception&) {  // short of memory: this look is not recorded
  }
}

}  // namespace

void look_at_peak_before_backward() noexcept {
  if (runtime.epoch_page->epoch.load(std::memory_order_relaxed) == 0 || !runtime.has_origins) return;
  take_turn([] { watch().before_backward(); });
}

bool peak_is_watched() noexcept {
  return watch().is_watched_by(&thread_state());
}

void look_at_peak_after_backward(const void* thread, trace::SiteId backward) noexcept {
  take_turn([=] { watch().after_backward(thread, backward); });
}

}  // namespace devsan::hooks
