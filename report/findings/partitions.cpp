#include "report/findings/partitions.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace devsan::report {
namespace {

constexpr std::string_view kMasterWeights = ".fp32_partitioned_groups_flat";
constexpr std::string_view kWeights = ".fp16_partitioned_groups_flat";
constexpr std::string_view kGradients = "grad_partitions_flat_buffer";

// What one optimizer says, by the name of the attribute.
class ZeroSettings {
 public:
  void set(std::string name, std::string value) { values_[std::move(name)] = std::move(value); }

  // Empty where it says nothing of it.
  std::string text(const std::string& name) const {
    const auto found = values_.find(name);
    return found != values_.end() ? found->second : std::string();
  }
  bool is_on(const std::string& name) const { return !text(name).empty() && text(name) != "0"; }

 private:
  std::map<std::string, std::string> values_;
};

struct Home {
  std::string device;  // "cpu", "cuda" for any GPU, "cuda:1"
  bool pinned = false;

  std::string text() const { return device + (pinned ? " pinned" : ""); }
};

// With a `ratio` some groups stay on the GPU: the optimizer has a list of them.
std::string home_of_master_weights(const ZeroSettings& settings, const std::string& group) {
  const std::string device = settings.text("device");
  if (!settings.is_on("offload_optimizer")) return device;
  const std::string own = settings.text("subgroup_to_device" + group);
  return own.empty() ? device : own;
}

// Offloaded gradients alone say nothing of the device that the weights stay on.
std::string home_of_weights(const ZeroSettings& settings) {
  if (settings.is_on("offload_param")) return "cpu";
  return settings.is_on("offload_optimizer") ? std::string() : settings.text("device");
}

class Partitions {
 public:
  Partitions(const trace::TraceFile& trace, const std::vector<KeptTensor>& tracks) : trace_(trace) {
    for (const trace::SettingPayload& setting : trace.settings()) {
      settings_[std::string(trace.string(setting.owner))].set(std::string(trace.string(setting.name)),
                                                              std::string(trace.string(setting.value)));
    }
    // A tensor that is pinned without one is as good as one that is not.
    has_gpu_ = std::ranges::any_of(tracks, [](const KeptTensor& track) {
      return std::ranges::any_of(track.stays, [](const Stay& stay) { return stay.device.starts_with("cuda"); });
    });
  }

  std::optional<Breach> breach(const KeptTensor& track) const {
    const Stay& stay = track.stays.back();
    if (stay.has(trace::kPlaceEmpty) || stay.device == "meta") return std::nullopt;  // on disk, or not there yet
    const std::optional<Home> home = home_of(track);
    if (!home || home->device.empty()) return std::nullopt;
    const bool there = stay.device == home->device || stay.device.starts_with(home->device + ":");
    if (there && (!home->pinned || stay.has(trace::kPlacePinned) || !was_moved_there(stay))) return std::nullopt;
    return Breach{&track, &stay, home->text()};
  }

 private:
  // Memory that DeepSpeed has pinned by a way of its own is not known to be pinned.
  bool was_moved_there(const Stay& stay) const { return how_it_came(trace_, stay) == trace::How::moved; }

  // None while its optimizer has sent its states elsewhere (`offload_states`).
  const ZeroSettings* settings_of(const std::string& owner) const {
    const auto found = settings_.find(owner);
    return found == settings_.end() || found->second.is_on("offloaded_states") ? nullptr : &found->second;
  }

  std::optional<Home> home_of(const KeptTensor& track) const {
    if (track.leaf == kGradients) {
      const ZeroSettings* settings = settings_of(track.owner);
      if (settings == nullptr) return std::nullopt;
      const std::string device = settings->text("device");
      return Home{device, device == "cpu" && has_gpu_ && settings->is_on("offload_optimizer_pin_memory")};
    }
    for (const std::string_view list : {kMasterWeights, kWeights}) {
      if (!track.owner.ends_with(list)) continue;
      const ZeroSettings* settings = settings_of(track.owner.substr(0, track.owner.size() - list.size()));
      if (settings == nullptr) return std::nullopt;
      return Home{list == kWeights ? home_of_weights(*settings) : home_of_master_weights(*settings, track.leaf)};
    }
    return std::nullopt;
  }

  const trace::TraceFile& trace_;
  std::map<std::string, ZeroSettings> settings_;  // by the name of the optimizer
  bool has_gpu_ = false;
};

}  // namespace

std::vector<Breach> misplaced_partitions(const trace::TraceFile& trace, const std::vector<KeptTensor>& tracks) {
  if (trace.settings().empty()) return {};
  const Partitions partitions(trace, tracks);
  std::vector<Breach> found;
  for (const KeptTensor& track : tracks) {
    if (auto breach = partitions.breach(track)) found.push_back(std::move(*breach));
  }
  return found;
}

}  // namespace devsan::report
