#include "hooks/torch_bridge/live_memory.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "hooks/inprocess/bridge/live_storages.h"
#include "hooks/inprocess/bridge/memory_samples.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/events/live_owners.h"
#include "hooks/inprocess/interpreter/python_api.h"
#include "hooks/inprocess/provenance/device_slots.h"
#include "hooks/torch_bridge/tensor_fields.h"

namespace devsan::hooks {

namespace {

using trace::LiveKind;

constexpr std::size_t kMaxRows = 192;

// "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has …": cuda:1. The host's allocator has no such words.
c10::Device device_named_in(std::string_view message) noexcept {
  constexpr std::string_view kBefore = ". GPU ";
  const std::size_t at = message.find(kBefore);
  if (at == message.npos) return c10::Device(c10::DeviceType::CPU);
  int index = 0;
  const char* begin = message.data() + at + kBefore.size();
  std::from_chars(begin, message.data() + message.size(), index);
  const auto type = message.starts_with("XPU") ? c10::DeviceType::XPU : c10::DeviceType::CUDA;
  return c10::Device(type, static_cast<c10::DeviceIndex>(index));
}

// What the storages of one moment are to the program.
class Owners {
 public:
  // `thread`: the calling one's PyThreadState. `backward`: where a backward was called that has failed, if that is what
  // lacked memory.
  void look(const void* thread, std::optional<trace::SiteId> backward) {
    objects_.look(thread);
    all_are_known_ = objects_.complete() && c10::GradMode::is_enabled();
    backward_ = backward;
  }

  // Of a storage that no object holds: an autograd graph keeps it, as far as there are graphs; or, of what was made in
  // a backward, that backward. Threads of the engine have no lines of their own.
  LiveOwner owner_of(const void* storage, trace::LineageId value, trace::SiteId made) const {
    if (const auto owner = objects_.owner_of(storage, value)) return *owner;
    if (!all_are_known_) return {LiveKind::unknown, {}};
    const bool on_the_way = backward_ && (made == *backward_ || made == trace::SiteId::none);
    if (on_the_way) return {LiveKind::gradient, {}};
    return {is_input(value, false) ? LiveKind::data : LiveKind::activation, {}};
  }

 private:
  LiveOwners objects_;
  bool all_are_known_ = false;
  std::optional<trace::SiteId> backward_;
};

// The storages of one device at one moment.
class Snapshot final : public LiveStorageVisitor {
 public:
  explicit Snapshot(trace::DeviceSlot device) : device_(device) {}

  // False where the sizes of storages cannot be read.
  bool take() { return visit_live_storages(*this); }

  void storage(const void* storage, trace::LineageId node, std::uint64_t bytes) noexcept override {
    const trace::LineageNode made = runtime.recorder->lineage(node);
    if (made.device != device_ || bytes == 0) return;
    try {
      live_.push_back({storage, node, made.site, made.op, bytes});
    } catch (const std::bad_alloc&) {  // it is short of memory, after all
    }
  }

  // The largest first.
  std::vector<trace::LiveMemoryRow> rows(const Owners& owners) const {
    std::unordered_map<std::string, trace::LiveMemoryRow> rows;
    for (const Live& live : live_) add_to(rows, live, owners.owner_of(live.storage, live.value, live.site));
    std::vector<trace::LiveMemoryRow> sorted;
    for (const auto& [key, row] : rows) sorted.push_back(row);
    std::ranges::sort(sorted, std::greater<>(), &trace::LiveMemoryRow::bytes);
    return sorted;
  }

 private:
  struct Live {
    const void* storage;
    trace::LineageId value;
    trace::SiteId site;
    trace::OperatorId op;
    std::uint64_t bytes;
  };

  static void add_to(std::unordered_map<std::string, trace::LiveMemoryRow>& rows, const Live& live,
                     const LiveOwner& owner) {
    const std::uint64_t place =
        std::uint64_t(live.site) << 20 | std::uint64_t(live.op) << 4 | std::uint64_t(owner.kind);
    trace::LiveMemoryRow& row = rows[std::to_string(place) + owner.module];
    row.site = live.site;
    row.op = live.op;
    row.kind = owner.kind;
    if (row.count++ == 0) row.module = runtime.recorder->intern_string(owner.module);
    row.bytes += live.bytes;
  }

  trace::DeviceSlot device_;
  std::vector<Live> live_;
};

// What was live when an allocator had no memory, and for which meeting.
struct Shortage {
  std::uint64_t epoch;
  trace::LiveMemoryPayload fixed;
  Snapshot live;
};

// That of a backward that is failing, until whoever called it has been told.
constinit std::atomic<Shortage*> unexplained{nullptr};

std::unique_ptr<Shortage> shortage_of(const trace::MeetingPayload& meeting, c10::Device device) {
  const trace::DeviceSlot slot = device_slot(device_key(device));
  auto shortage = std::make_unique<Shortage>(
      Shortage{runtime.epoch_page->epoch.load(std::memory_order_relaxed), {}, Snapshot(slot)});
  if (!shortage->live.take()) return nullptr;
  const DeviceBytes bytes = device_bytes(device_key(device));
  shortage->fixed.time_ns = meeting.time_ns;
  shortage->fixed.tid = meeting.tid;
  shortage->fixed.device = slot;
  shortage->fixed.allocated = bytes.allocated;
  shortage->fixed.reserved = bytes.reserved;
  return shortage;
}

void write(const Shortage& shortage, const Owners& owners) {
  std::vector<trace::LiveMemoryRow> rows = shortage.live.rows(owners);
  trace::LiveMemoryPayload fixed = shortage.fixed;
  for (std::size_t k = kMaxRows; k < rows.size(); ++k) fixed.rest += rows[k].bytes;
  rows.resize(std::min(rows.size(), kMaxRows));
  keep_sources_of(rows);
  runtime.recorder->add_live_memory(fixed, rows);
}

void record(const trace::MeetingPayload& meeting, c10::Device device, const void* thread, bool in_backward) {
  std::unique_ptr<Shortage> shortage = shortage_of(meeting, device);
  if (shortage == nullptr) return;
  Owners owners;
  if (thread != nullptr && !in_backward) {
    const PythonSection section;
    owners.look(thread, std::nullopt);
  }
  write(*shortage, owners);
  if (in_backward) delete unexplained.exchange(shortage.release(), std::memory_order_acq_rel);
}

}  // namespace

void record_live_memory(const trace::MeetingPayload& meeting, std::string_view message, const void* thread,
                        bool in_backward) noexcept {
  try {
    record(meeting, device_named_in(message), thread, in_backward);
  } catch (const std::bad_alloc&) {  // the report lacks what was live
  }
}

bool live_memory_is_unexplained() noexcept {
  return unexplained.load(std::memory_order_relaxed) != nullptr;
}

void forget_unexplained_live_memory() noexcept {
  delete unexplained.exchange(nullptr, std::memory_order_acq_rel);
}

void explain_live_memory(const void* thread, trace::SiteId backward) noexcept {
  const std::unique_ptr<Shortage> shortage(unexplained.exchange(nullptr, std::memory_order_acq_rel));
  if (shortage == nullptr || shortage->epoch != runtime.epoch_page->epoch.load(std::memory_order_relaxed)) return;
  try {
    Owners owners;
    const PythonSection section;
    owners.look(thread, backward);
    write(*shortage, owners);
  } catch (const std::bad_alloc&) {  // what was written without kinds stands
  }
}

}  // namespace devsan::hooks
