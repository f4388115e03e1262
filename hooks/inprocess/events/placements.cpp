#include "hooks/inprocess/events/placements.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <vector>

#include "hooks/inprocess/bridge/copies.h"
#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/common/busy.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/common/thread_state.h"
#include "hooks/inprocess/events/moves.h"
#include "hooks/inprocess/interpreter/python_api.h"
#include "hooks/inprocess/provenance/lineage_nodes.h"
#include "hooks/inprocess/provenance/stack.h"
#include "hooks/inprocess/snapshot/placement_walk.h"
#include "trace/clock.h"
#include "trace/source_hash.h"

namespace devsan::hooks {

namespace {

// From one look to the next, as many times what the last one took: 0.4 % of the time at the ends of steps, 0.05 %
// within them, and as much for the look at the step's end that confirms what one within it has found. The first ones of
// a process come as they are due.
constexpr std::int64_t kStepEndFactor = 250;
constexpr std::int64_t kInStepFactor = 2000;
constexpr std::uint32_t kLooksInTurn = 6;
constexpr std::size_t kPlaceCapacity = 1 << 14;
constexpr std::size_t kPlaceProbes = 32;
constexpr std::size_t kMostRecords = 4096;  // of one record
constexpr std::size_t kKeptHistories = 256;

// What is known of one name.
struct Known {
  std::uint64_t key;     // 0: the place is free
  std::uint32_t number;  // of a setting the hash of its value
  std::uint32_t changes;
  trace::DeviceSlot device;
  std::uint8_t flags;
  bool in_step;  // this was seen within a step, and not at the end of one yet
};

// A name that goes to and fro is written down so often.
constexpr std::uint32_t kMostChanges = 8;

class Places final : public PlacedTensorVisitor {
 public:
  void look(const void* thread, const void* left, trace::LookedAt when) {
    if (known_ == nullptr) known_ = std::make_unique<std::array<Known, kPlaceCapacity>>();
    PlacementWalk walk(*this, names_);
    walk_ = &walk;
    when_ = when;
    seen_ = 0;
    wrote_ = false;
    records_.clear();
    walk.run(thread, left, when == trace::LookedAt::in_step);
    write(walk.truncated() || full_);
    walk_ = nullptr;
    ++(when == trace::LookedAt::in_step ? looks_in_step_ : looks_at_end_);
    unconfirmed_ = when == trace::LookedAt::in_step && (unconfirmed_ || wrote_);
  }

  bool placed(const PlacedTensor& tensor) override {
    ++seen_;
    Known* known = find(tensor.key);
    if (known == nullptr) return true;
    if (tensor.tensor == nullptr) {
      if (known->number != 0) return true;
      known->number = ++names_given_;
      add(tensor, *known, true);
      return true;
    }
    if (const c10::StorageImpl* storage = storage_of(tensor.tensor)) keep_in_mind(storage);
    const trace::DeviceSlot device = device_slot_of(tensor.tensor);
    const bool is_new = known->number == 0;
    const bool within = when_ == trace::LookedAt::in_step;
    const std::uint8_t flags = flags_of(tensor) | asked_of(*known, tensor.tensor, device);
    const bool stays = !is_new && known->device == device && (known->flags & ~trace::kPlacePinned) == flags;
    if (stays && (within || !known->in_step)) return true;
    if (!stays && known->changes >= kMostChanges) return true;
    if (!stays) ++known->changes;
    known->in_step = within;
    if (is_new) known->number = ++names_given_;
    const bool pinned = is_pinned_host_memory(tensor.tensor);
    known->device = device;
    known->flags = static_cast<std::uint8_t>(flags | (pinned ? trace::kPlacePinned : 0));
    add(tensor, *known, is_new);
    return true;
  }

  void said(const PlacedSetting& setting) override {
    Known* known = find(setting.key);
    if (known == nullptr) return;
    const auto value = static_cast<std::uint32_t>(trace::source_hash(setting.value)) | 1;
    if (known->number == value || known->changes >= kMostChanges) return;
    ++known->changes;
    known->number = value;
    trace::Recorder& recorder = *runtime.recorder;
    trace::SettingPayload record{};
    record.time_ns = trace::wall_clock_ns();
    record.step = runtime.step.load(std::memory_order_relaxed);
    record.owner = recorder.intern_string(walk_->path_of(setting.keeper));
    record.type = recorder.intern_string(walk_->type_of_keeper(setting.keeper));
    record.name = recorder.intern_string(setting.name);
    record.value = recorder.intern_string(setting.value);
    recorder.add_setting(record);
  }

  std::uint32_t looks_at_end() const noexcept { return looks_at_end_; }
  std::uint32_t looks_in_step() const noexcept { return looks_in_step_; }
  // Whether a look within a step found something that counts only once the training is known to go on.
  bool unconfirmed() const noexcept { return unconfirmed_; }

  void forget() noexcept {
    known_.reset();
    names_.clear();
    looks_at_end_ = 0;
    looks_in_step_ = 0;
    names_given_ = 0;
    kept_ = 0;
    full_ = false;
    unconfirmed_ = false;
  }

 private:
  static std::uint8_t flags_of(const PlacedTensor& tensor) noexcept {
    return static_cast<std::uint8_t>((tensor.managed ? trace::kPlaceManaged : 0) |
                                     (is_empty(tensor.tensor) ? trace::kPlaceEmpty : 0) |
                                     (dims_of(tensor.tensor) == 0 ? trace::kPlaceScalar : 0) |
                                     (is_trained(tensor.tensor) ? trace::kPlaceTrained : 0));
  }

  // What was asked for holds for as long as the tensor stays, although the table that tells it forgets.
  static std::uint8_t asked_of(const Known& known, const c10::TensorImpl* tensor, trace::DeviceSlot device) noexcept {
    const bool stays = known.number != 0 && known.device == device;
    if (stays && (known.flags & trace::kPlaceAsked) != 0) return trace::kPlaceAsked;
    const c10::StorageImpl* storage = storage_of(tensor);
    return storage != nullptr && find_copy(storage, Copied::nowhere) ? trace::kPlaceAsked : 0;
  }

  // Null where there is no room for it.
  Known* find(std::uint64_t key) noexcept {
    key |= 1;
    for (std::size_t probe = 0; probe < kPlaceProbes; ++probe) {
      Known& at = (*known_)[(key + probe) % kPlaceCapacity];
      if (at.key == 0) at.key = key;
      if (at.key == key) return &at;
    }
    full_ = true;
    return nullptr;
  }

  void add(const PlacedTensor& tensor, const Known& known, bool is_new) {
    trace::Recorder& recorder = *runtime.recorder;
    trace::PlacementRecord record{};
    record.number = known.number;
    if (is_new) {
      record.owner = recorder.intern_string(walk_->owner_of(tensor));
      record.leaf = recorder.intern_string(walk_->leaf_of(tensor));
      record.type = recorder.intern_string(walk_->type_of_owner(tensor));
    }
    if (tensor.tensor != nullptr) record.lineage = tensor_history(tensor.tensor);
    record.kind = tensor.kind;
    record.device = known.device;
    record.flags = known.flags;
    keep_lines(record.lineage);
    records_.push_back(record);
    if (records_.size() == kMostRecords) write(false);
  }

  // Those of tensors that were made alike are the same.
  void keep_lines(trace::LineageId lineage) noexcept {
    if (lineage == trace::LineageId::none || kept_ >= kKeptHistories) return;
    const auto end = histories_.begin() + static_cast<std::ptrdiff_t>(kept_);
    if (std::find(histories_.begin(), end, lineage) != end) return;
    histories_[kept_++] = lineage;
    keep_source_lines(lineage);
  }

  void write(bool truncated) noexcept {
    const bool confirms = unconfirmed_ && when_ == trace::LookedAt::backward_end;
    if (records_.empty() && (!confirms || wrote_)) return;
    wrote_ = true;
    trace::PlacementsPayload fixed{};
    fixed.time_ns = trace::wall_clock_ns();
    fixed.step = runtime.step.load(std::memory_order_relaxed);
    fixed.seen = seen_;
    fixed.when = when_;
    fixed.truncated = truncated ? 1 : 0;
    runtime.recorder->add_placements(fixed, records_);
    records_.clear();
  }

  std::unique_ptr<std::array<Known, kPlaceCapacity>> known_;
  RootNames names_;
  PlacementWalk* walk_ = nullptr;
  std::vector<trace::PlacementRecord> records_;
  std::array<trace::LineageId, kKeptHistories> histories_{};
  std::size_t kept_ = 0;
  trace::LookedAt when_ = trace::LookedAt::none;
  std::uint32_t seen_ = 0;
  std::uint32_t looks_at_end_ = 0;
  std::uint32_t looks_in_step_ = 0;
  std::uint32_t names_given_ = 0;
  bool full_ = false;
  bool wrote_ = false;
  bool unconfirmed_ = false;
};

// Never destroyed: threads may look until the very end.
Places& places() {
  alignas(Places) static std::byte memory[sizeof(Places)];
  static Places* const made = new (memory) Places;
  return *made;
}

constinit std::atomic<std::int64_t> next_look{0};  // at the end of a step
constinit std::atomic<std::int64_t> next_look_in_step{0};
constinit std::atomic<bool> unconfirmed{false};
constinit std::atomic<std::uint64_t> epoch{0};

void look(const void* thread, const void* left, trace::LookedAt when) noexcept {
  const std::int64_t begin = trace::clock_ns(CLOCK_THREAD_CPUTIME_ID);
  const std::uint64_t now = runtime.epoch_page->epoch.load(std::memory_order_relaxed);
  try {
    if (epoch.exchange(now, std::memory_order_relaxed) != now) places().forget();
    places().look(thread, left, when);
  } catch (const std::exception&) {  // out of memory: this look is not recorded
  }
  const std::int64_t took = trace::clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
  const bool within = when == trace::LookedAt::in_step;
  const bool in_turn = (within ? places().looks_in_step() : places().looks_at_end()) < kLooksInTurn;
  const std::int64_t wait = took * (within ? kInStepFactor : kStepEndFactor);
  const std::int64_t next = in_turn ? 0 : trace::clock_ns(CLOCK_MONOTONIC) + wait;
  (within ? next_look_in_step : next_look).store(next, std::memory_order_relaxed);
  unconfirmed.store(places().unconfirmed(), std::memory_order_relaxed);
}

// Of a forked child, too.
bool is_first_look() noexcept {
  return epoch.load(std::memory_order_relaxed) != runtime.epoch_page->epoch.load(std::memory_order_relaxed);
}

bool is_due(const std::atomic<std::int64_t>& at) noexcept {
  if (!runtime.host->options.placements) return false;
  const std::int64_t next = at.load(std::memory_order_relaxed);
  return is_first_look() || next == 0 || trace::clock_ns(CLOCK_MONOTONIC) >= next;
}

}  // namespace

bool placements_are_due() noexcept {
  return unconfirmed.load(std::memory_order_relaxed) || is_due(next_look);
}

bool look_in_step_is_due() noexcept {
  return is_due(next_look_in_step);
}

void look_at_placements(const void* thread, trace::LookedAt when) noexcept {
  ThreadState& state = thread_state();
  if (state.busy || !interpreter_lives()) return;
  const PythonSection section;
  const Busy busy(state);
  look(thread, nullptr, when);
}

void look_at_last_placements(const void* left) noexcept {
  if (!runtime.host->options.placements) return;
  const bool has_trained = !is_first_look() && places().looks_at_end() > 0;
  const bool died_in_step =
      left != nullptr && has_trained && runtime.last_pass.load(std::memory_order_relaxed) == Pass::forward;
  look(python.PyGILState_GetThisThreadState(), left,
       died_in_step ? trace::LookedAt::in_step : trace::LookedAt::interpreter_end);
}

}  // namespace devsan::hooks
