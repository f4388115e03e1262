#include "hooks/live_memory.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <new>
#include <string>
#include <unordered_map>
#include <vector>

#include "hooks/live_storages.h"
#include "hooks/memory_samples.h"
#include "hooks/object_search.h"
#include "hooks/optimizer_state.h"
#include "hooks/python_frames.h"
#include "hooks/runtime.h"
#include "hooks/stack.h"

namespace devsan::hooks {

namespace {

using trace::LiveKind;

constexpr std::size_t kMaxRows = 192;
constexpr std::size_t kShownRows = 24;  // whose source is kept
constexpr int kModuleLevels = 2;

// "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has …": cuda:1. The host's allocator has no such words.
c10::Device device_in(std::string_view message) noexcept {
  constexpr std::string_view kBefore = ". GPU ";
  const std::size_t at = message.find(kBefore);
  if (at == message.npos) return c10::Device(c10::DeviceType::CPU);
  int index = 0;
  const char* begin = message.data() + at + kBefore.size();
  std::from_chars(begin, message.data() + message.size(), index);
  const auto type = message.starts_with("XPU") ? c10::DeviceType::XPU : c10::DeviceType::CUDA;
  return c10::Device(type, static_cast<c10::DeviceIndex>(index));
}

// "encoder.layers" of "encoder.layers.3.weight".
std::string module_of(const std::string& parameter) {
  std::size_t end = parameter.rfind('.');
  if (end == parameter.npos) return {};
  std::size_t at = 0;
  for (int level = 0; level < kModuleLevels && at < end; ++level) at = std::min(end, parameter.find('.', at + 1));
  return parameter.substr(0, at);
}

struct Owner {
  LiveKind kind = LiveKind::other;
  std::string module;
};

// What the storages of tensors that Python objects hold are to the program.
class Owners final : public TensorObserver {
 public:
  void look(const void* frame) {
    search_.run(frame);
    for (const Seen& seen : seen_) take(seen);
    complete_ = search_.complete();
  }

  void tensor(std::uint32_t place, const c10::TensorImpl* tensor) override { seen_.push_back({place, tensor}); }

  // Of a storage that no object holds: an autograd graph keeps it, as far as there are graphs.
  Owner owner_of(const void* storage) const {
    const auto found = owners_.find(storage);
    if (found != owners_.end()) return found->second;
    return {complete_ && c10::GradMode::is_enabled() ? LiveKind::activation : LiveKind::other, {}};
  }

 private:
  struct Seen {
    std::uint32_t place;
    const c10::TensorImpl* tensor;
  };

  void take(const Seen& seen) {
    const Place& place = search_.place(seen.place);
    Owner owner;
    if (const Holding* holding = search_.owner(place.object)) {
      const bool parameter = holding->link.kind == LinkKind::parameter;
      owner = {parameter ? LiveKind::parameter : LiveKind::buffer, module_of(name_in_modules(search_, place.object))};
    } else if (const void* parameter = parameter_of_state(seen.place)) {
      owner = {LiveKind::optimizer_state, module_of(name_in_modules(search_, parameter))};
    } else if (seen.tensor->requires_grad() && place.link.kind != LinkKind::gradient && !is_leaf(seen.tensor)) {
      owner.kind = LiveKind::activation;
    }
    set(TensorFields::storage(seen.tensor), owner);
    const at::Tensor& gradient = seen.tensor->grad();
    if (gradient.defined()) {
      set(TensorFields::storage(gradient.unsafeGetTensorImpl()), {LiveKind::gradient, owner.module});
    }
  }

  // Several tensors may share a storage: what says most of it counts, and the kinds are in that order.
  void set(const void* storage, const Owner& owner) {
    if (storage == nullptr) return;
    Owner& known = owners_[storage];
    if (known.kind == LiveKind::other || (owner.kind != LiveKind::other && owner.kind < known.kind)) known = owner;
  }

  static bool is_leaf(const c10::TensorImpl* tensor) noexcept { return !has_graph(tensor); }

  // `optimizer.state[parameter]['exp_avg']`: the parameter; null for any other tensor.
  const void* parameter_of_state(std::uint32_t index) const {
    const Place& entry = search_.place(index);
    const Place& of_parameter = search_.place(entry.parent);
    const Place& state = search_.place(of_parameter.parent);
    if (entry.link.kind != LinkKind::key || of_parameter.link.kind != LinkKind::key) return nullptr;
    return keeps_parameter_groups(search_.place(state.parent).object) ? of_parameter.link.key : nullptr;
  }

  ObjectSearch search_{*this};
  std::vector<Seen> seen_;
  std::unordered_map<const void*, Owner> owners_;
  bool complete_ = false;
};

// The rows of one device, added up.
class Rows final : public LiveStorageVisitor {
 public:
  Rows(trace::DeviceSlot device, const Owners& owners) : device_(device), owners_(owners) {}

  void storage(const void* storage, trace::LineageId node, std::uint64_t bytes) noexcept override {
    const trace::LineageNode made = runtime.recorder->lineage(node);
    if (made.device != device_ || bytes == 0) return;
    try {
      const Owner owner = owners_.owner_of(storage);
      trace::LiveMemoryRow& row = rows_[std::to_string(std::uint64_t(made.site) << 20 | std::uint64_t(made.op) << 4 |
                                                       std::uint64_t(owner.kind)) +
                                        owner.module];
      row.site = made.site;
      row.op = made.op;
      row.kind = owner.kind;
      if (row.count++ == 0) row.module = runtime.recorder->intern_string(owner.module);
      row.bytes += bytes;
    } catch (const std::bad_alloc&) {  // it is short of memory, after all
    }
  }

  std::vector<trace::LiveMemoryRow> largest_first() const {
    std::vector<trace::LiveMemoryRow> rows;
    for (const auto& [key, row] : rows_) rows.push_back(row);
    std::ranges::sort(rows, std::greater<>(), &trace::LiveMemoryRow::bytes);
    return rows;
  }

 private:
  trace::DeviceSlot device_;
  const Owners& owners_;
  std::unordered_map<std::string, trace::LiveMemoryRow> rows_;
};

void keep_sources(std::span<const trace::LiveMemoryRow> rows) {
  for (const trace::LiveMemoryRow& row : rows.first(std::min(rows.size(), kShownRows))) {
    trace::FrameRecord frames[2];
    keep_source_lines({frames, frames_of_site(row.site, frames)});
  }
}

void record(const trace::MeetingPayload& meeting, c10::Device device, const void* thread) {
  Owners owners;
  if (thread != nullptr) {
    const PythonSection section;
    owners.look(current_frame(thread));
  }
  Rows rows(device_slot(device_key(device)), owners);
  if (!visit_live_storages(rows)) return;
  std::vector<trace::LiveMemoryRow> all = rows.largest_first();
  trace::LiveMemoryPayload fixed{};
  fixed.time_ns = meeting.time_ns;
  fixed.tid = meeting.tid;
  fixed.device = device_slot(device_key(device));
  const DeviceBytes bytes = device_bytes(device);
  fixed.allocated = bytes.allocated;
  fixed.reserved = bytes.reserved;
  for (std::size_t k = kMaxRows; k < all.size(); ++k) fixed.rest += all[k].bytes;
  all.resize(std::min(all.size(), kMaxRows));
  keep_sources(all);
  runtime.recorder->add_live_memory(fixed, all);
}

}  // namespace

void record_live_memory(const trace::MeetingPayload& meeting, std::string_view message, const void* thread) noexcept {
  try {
    record(meeting, device_in(message), thread);
  } catch (const std::bad_alloc&) {  // the report lacks what was live
  }
}

}  // namespace devsan::hooks
