#include "hooks/inprocess/events/live_owners.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/provenance/stack.h"
#include "hooks/inprocess/snapshot/optimizer_state.h"

namespace devsan::hooks {

namespace {

using trace::LiveKind;

constexpr std::size_t kShownRows = 24;  // whose source is kept
constexpr int kModuleLevels = 2;
constexpr std::string_view kLoaders = "/torch/utils/data/";

// "encoder.layers" of "encoder.layers.3.weight".
std::string module_of(const std::string& parameter) {
  std::size_t end = parameter.rfind('.');
  if (end == parameter.npos) return {};
  std::size_t at = 0;
  for (int level = 0; level < kModuleLevels && at < end; ++level) at = std::min(end, parameter.find('.', at + 1));
  return parameter.substr(0, at);
}

bool is_host(trace::DeviceSlot device) noexcept {
  return runtime.recorder->string(runtime.recorder->device_name(device)) == "cpu";
}

}  // namespace

void LiveOwners::look(const void* thread) {
  search_.run_threads(thread);
  for (const Seen& seen : seen_) take(seen);
  complete_ = search_.complete();
}

std::optional<LiveOwner> LiveOwners::owner_of(const void* storage, trace::LineageId value) const {
  const auto found = owners_.find(storage);
  if (found == owners_.end()) return std::nullopt;
  if (found->second.kind == LiveKind::other && is_input(value, true)) return LiveOwner{LiveKind::data, {}};
  return found->second;
}

void LiveOwners::take(const Seen& seen) {
  const Place& place = search_.place(seen.place);
  LiveOwner owner;
  if (const Holding* holding = search_.owner(place.object)) {
    const bool parameter = holding->link.kind == LinkKind::parameter;
    owner = {parameter ? LiveKind::parameter : LiveKind::buffer, module_of(name_in_modules(search_, place.object))};
  } else if (const void* parameter = parameter_of_state(seen.place)) {
    owner = {LiveKind::optimizer_state, module_of(name_in_modules(search_, parameter))};
  } else if (place.link.kind != LinkKind::gradient && has_graph(seen.tensor)) {
    owner.kind = LiveKind::activation;
  }
  set(storage_of(seen.tensor), owner);
  const c10::TensorImpl* gradient = gradient_of(seen.tensor);
  if (const c10::StorageImpl* storage = storage_of(gradient)) set(storage, {LiveKind::gradient, owner.module});
}

// Several tensors may share a storage: what says most of it counts, and the kinds are in that order.
void LiveOwners::set(const void* storage, const LiveOwner& owner) {
  if (storage == nullptr) return;
  LiveOwner& known = owners_[storage];
  if (known.kind == LiveKind::other || (owner.kind != LiveKind::other && owner.kind < known.kind)) known = owner;
}

// `optimizer.state[parameter]['exp_avg']`: the parameter; null for any other tensor.
const void* LiveOwners::parameter_of_state(std::uint32_t index) const {
  const Place& entry = search_.place(index);
  const Place& of_parameter = search_.place(entry.parent);
  const Place& state = search_.place(of_parameter.parent);
  if (entry.link.kind != LinkKind::key || of_parameter.link.kind != LinkKind::key) return nullptr;
  return keeps_parameter_groups(search_.place(state.parent).object) ? of_parameter.link.key : nullptr;
}

bool is_input(trace::LineageId value, bool kept_by_object) noexcept {
  const trace::LineageNode made = runtime.recorder->lineage(value);
  const trace::Position innermost = runtime.recorder->site(made.site).innermost;
  if (runtime.recorder->string(innermost.file).find(kLoaders) != std::string_view::npos) return true;
  if (made.how == trace::How::created) return kept_by_object;
  if (made.how != trace::How::moved || is_host(made.device)) return false;
  return made.parent == trace::LineageId::none || is_host(runtime.recorder->lineage(made.parent).device);
}

void keep_sources_of(std::span<const trace::LiveMemoryRow> rows) noexcept {
  // Together: a file that several lines are of is opened once.
  std::array<trace::FrameRecord, 2 * kShownRows> frames;
  std::size_t count = 0;
  for (const trace::LiveMemoryRow& row : rows.first(std::min(rows.size(), kShownRows))) {
    count += frames_of_site(row.site, std::span<trace::FrameRecord, 2>(frames.data() + count, 2));
  }
  keep_source_lines({frames.data(), count});
}

}  // namespace devsan::hooks
