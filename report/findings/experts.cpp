#include "report/findings/experts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "rules/pattern.h"

namespace devsan::report {
namespace {

constexpr std::size_t kLeastAgreeing = 2;  // siblings, for what they have in common to be meant

bool is_gpu(const std::string& device) {
  return device.starts_with("cuda:");
}

// The parameters of one module and what is in it, and the device of all of them: none where there are several.
struct Expert {
  std::vector<const KeptTensor*> parameters;
  std::optional<std::string> device;
  std::string said;  // by an attribute of its own

  void add(const KeptTensor& track) {
    const std::string& here = track.stays.back().device;
    device = parameters.empty() || device == here ? std::optional(here) : std::nullopt;
    parameters.push_back(&track);
  }
};

// "layers.0.experts" and "3" of "layers.0.experts.3"; none where the last part is no number.
std::optional<std::pair<std::string, std::string>> entry_of_list(const std::string& path) {
  const std::size_t point = path.rfind('.');
  if (point == std::string::npos || !rules::natural_number(path.substr(point + 1))) return std::nullopt;
  return std::pair(path.substr(0, point), path.substr(point + 1));
}

class Experts {
 public:
  Experts(const trace::TraceFile& trace, const std::vector<KeptTensor>& tracks) {
    for (const trace::SettingPayload& setting : trace.settings()) {
      const std::string name(trace.string(setting.name));
      const std::string type(trace.string(setting.type));
      settings_[std::string(trace.string(setting.owner))][name] = {std::string(trace.string(setting.value)), type};
    }
    for (const KeptTensor& track : tracks) {
      if (track.kind == trace::PlaceKind::parameter) parameters_.emplace(track.path(), &track);
    }
  }

  // Siblings of one class, each with a device in an attribute of one name. They are spread on purpose: all but a few
  // are on the GPU that they name, and they name several. A few are on another GPU.
  std::vector<Breach> apart_from_own_word() const {
    std::map<std::tuple<std::string, std::string, std::string>, std::vector<Expert>> lists;
    for (const auto& [owner, values] : settings_) {
      const auto entry = entry_of_list(owner);
      if (!entry) continue;
      for (const auto& [name, value] : values) {
        if (!is_gpu(value.text)) continue;
        std::optional<Expert> expert = expert_at(owner + ".");
        if (!expert) continue;
        expert->said = value.text;
        lists[{entry->first, value.type, name}].push_back(std::move(*expert));
      }
    }
    std::vector<Breach> found;
    for (const auto& [list, experts] : lists) append_apart(experts, found);
    return found;
  }

  // The experts that a rank has of a group of several ranks' are together on its GPU: so says most of the layer.
  std::vector<Breach> apart_from_group() const {
    std::vector<Breach> found;
    std::set<std::string> lists;
    for (const auto& [owner, values] : settings_) {
      const auto ranks = values.find("ep_size");
      const auto count = values.find("num_local_experts");
      if (ranks == values.end() || count == values.end()) continue;
      const auto size = rules::natural_number(ranks->second.text);
      const auto local = rules::natural_number(count->second.text);
      if (size && local && *size > 1)
        append_apart_from_layer(owner + ".", static_cast<std::size_t>(*local), lists, found);
    }
    return found;
  }

 private:
  struct Value {
    std::string text, type;
  };

  // What is below a prefix; none where something else decides, or nothing is there.
  std::optional<Expert> expert_at(const std::string& prefix) const {
    Expert expert;
    for (auto at = parameters_.lower_bound(prefix); at != parameters_.end() && at->first.starts_with(prefix); ++at) {
      if (is_undecided(at->second->stays.back())) return std::nullopt;
      expert.add(*at->second);
    }
    return expert.parameters.empty() ? std::nullopt : std::optional(std::move(expert));
  }

  static void append_breaches(const Expert& expert, const std::string& expected, std::vector<Breach>& found) {
    for (const KeptTensor* track : expert.parameters) found.push_back({track, &track->stays.back(), expected});
  }

  static void append_apart(const std::vector<Expert>& experts, std::vector<Breach>& found) {
    std::set<std::string> named;
    std::vector<const Expert*> apart;
    std::size_t agreeing = 0;
    for (const Expert& expert : experts) {
      named.insert(expert.said);
      if (!expert.device || !is_gpu(*expert.device)) return;
      if (*expert.device == expert.said) {
        ++agreeing;
      } else {
        apart.push_back(&expert);
      }
    }
    if (named.size() < 2 || agreeing < kLeastAgreeing || agreeing <= apart.size()) return;
    for (const Expert* expert : apart) append_breaches(*expert, expert->said, found);
  }

  // The experts below a prefix by the list that they are in, and what is beside them.
  void append_apart_from_layer(const std::string& layer, std::size_t local, std::set<std::string>& lists,
                               std::vector<Breach>& found) const {
    std::map<std::string, std::map<std::string, Expert>> experts;
    Expert gate;
    for (auto at = parameters_.lower_bound(layer); at != parameters_.end() && at->first.starts_with(layer); ++at) {
      if (is_undecided(at->second->stays.back())) return;
      const auto entry = first_entry(at->first, layer.size());
      (entry ? experts[entry->first][entry->second] : gate).add(*at->second);
    }
    for (const auto& [list, members] : experts) {
      if (members.size() != local || !lists.insert(list).second) continue;
      std::map<std::string, std::size_t> devices;
      for (const auto& [index, expert] : members) ++devices[expert.device.value_or("")];
      if (gate.device) ++devices[*gate.device];
      const auto most = std::ranges::max_element(devices, {}, [](const auto& device) { return device.second; });
      const std::size_t votes = members.size() + (gate.device ? 1 : 0);
      if (most->second < kLeastAgreeing || most->second * 2 <= votes || !is_gpu(most->first)) continue;
      for (const auto& [index, expert] : members) {
        if (expert.device && is_gpu(*expert.device) && *expert.device != most->first) {
          append_breaches(expert, most->first, found);
        }
      }
    }
  }

  // The list and the entry that the first number behind `from` belongs to.
  static std::optional<std::pair<std::string, std::string>> first_entry(const std::string& path, std::size_t from) {
    for (std::size_t end = path.find('.', from); end != std::string::npos; end = path.find('.', end + 1)) {
      if (auto entry = entry_of_list(path.substr(0, end)); entry && entry->first.size() >= from) return entry;
    }
    return std::nullopt;
  }

  std::map<std::string, std::map<std::string, Value>> settings_;  // by the module, then by the attribute
  std::map<std::string, const KeptTensor*> parameters_;           // by name
};

}  // namespace

std::vector<Breach> misplaced_experts(const trace::TraceFile& trace, const std::vector<KeptTensor>& tracks) {
  if (trace.settings().empty()) return {};
  const Experts experts(trace, tracks);
  std::vector<Breach> found = experts.apart_from_own_word();
  std::vector<Breach> more = experts.apart_from_group();
  found.insert(found.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  std::ranges::stable_sort(found, {}, &Breach::track);                  // in the order that they were seen in
  const auto doubles = std::ranges::unique(found, {}, &Breach::track);  // that break both
  found.erase(doubles.begin(), doubles.end());
  return found;
}

}  // namespace devsan::report
