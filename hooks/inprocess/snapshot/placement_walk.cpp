#include "hooks/inprocess/snapshot/placement_walk.h"

#include <algorithm>
#include <array>
#include <utility>

#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/code_table.h"
#include "hooks/inprocess/interpreter/own_attributes.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/snapshot/object_search.h"
#include "hooks/inprocess/snapshot/settings.h"
#include "trace/function_names.h"
#include "trace/source_hash.h"

namespace devsan::hooks {

namespace {

constexpr std::size_t kMaxWalkedObjects = 40000;
constexpr std::uint32_t kMaxOtherObjects = 4000;
constexpr std::uint8_t kMaxWalkedSteps = 4;
constexpr int kMaxWalkedFrames = 64;
constexpr std::ptrdiff_t kMaxWalkedEntries = 512;  // of one container
constexpr std::size_t kMaxNameLength = 512;

std::uint64_t mixed(std::uint64_t seed, std::uint64_t value) noexcept {
  std::uint64_t hash = (seed ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 29;
}

std::uint64_t link_hash(const Link& link) noexcept {
  if (link.text != nullptr) return trace::source_hash(link.text);
  char buffer[256];
  if (link.name != nullptr) return trace::source_hash(text_of(link.name, buffer, sizeof buffer));
  if (link.key != nullptr) return static_cast<std::uint64_t>(integer_in(link.key).value_or(-1)) + 77;
  return static_cast<std::uint64_t>(link.index);
}

// ".weight", ".0", "[3]", "[name]": a link as rules write it. The children of a Sequential are numbered.
std::string segment(const Link& link) {
  const std::string name = link_name(link);
  switch (link.kind) {
    case LinkKind::index:
      return name.empty() ? "[" + std::to_string(link.index) + "]" : "." + name;
    case LinkKind::key: {
      const auto number = link.name == nullptr ? integer_in(link.key) : std::nullopt;
      return "[" + (number ? std::to_string(*number) : name.empty() ? std::string("...") : name) + "]";
    }
    case LinkKind::member:
      return "{...}";
    default:
      return "." + name;
  }
}

std::string_view short_type_name(const void* object) noexcept {
  return trace::own_name(type_name(object));
}

bool is_empty_container(const void* object) noexcept {
  if (is_dict(object)) return field<std::ptrdiff_t>(object, kDictUsed) == 0;
  return (is_list(object) || is_tuple(object)) && size_of(object) == 0;
}

// What torch keeps in every module for itself, and what accelerate keeps of an offloaded one.
bool is_machinery(std::string_view name) noexcept {
  return name.starts_with("_") && (name.ends_with("_hooks") || name.ends_with("_hooks_with_kwargs") ||
                                   name == "_hf_hook" || name == "_old_forward");
}

// Torch's function that calls a module's `forward`.
bool calls_module(const void* code) noexcept {
  return is_name(field<const void*>(code, code_members.name), "_call_impl");
}

// Who finds one of these on a module knows that something else decides where its tensors are.
bool is_mark_of_manager(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 6> kMarks = {
      "_hf_hook", "hf_device_map", "_handle", "_fsdp_wrapped_module", "_diffusers_hook", "ds_inflight_param_registry"};
  return std::ranges::find(kMarks, name) != kMarks.end();
}

}  // namespace

bool RootNames::knows(const void* module) const {
  const auto known = names_.find(module);
  return known != names_.end() && known->second.type == type_of(module);
}

const std::string& RootNames::name_for(const void* module, const std::string& found) {
  if (knows(module)) return names_.find(module)->second.name;
  if (!names_.contains(module) && names_.size() >= kMaxNames) return found;
  Known& entry = names_[module];
  entry = {type_of(module), found};
  return entry.name;
}

// The members of one object, which its own function takes in when all of them have been seen.
class PlacementWalk::Members final : public LinkVisitor {
 public:
  bool link(const Link& link, void* object) override {
    all.emplace_back(link, object);
    return static_cast<std::ptrdiff_t>(all.size()) < kMaxWalkedEntries;
  }
  std::vector<std::pair<Link, void*>> all;
};

class PlacementWalk::Settings final : public SettingVisitor {
 public:
  Settings(PlacementWalk& walk, std::uint32_t keeper) : walk_(walk), keeper_(keeper) {}
  void setting(std::string_view name, std::ptrdiff_t entry, const std::string& value) override {
    std::string whole(name);
    if (entry >= 0) whole += "[" + std::to_string(entry) + "]";
    const std::uint64_t key = mixed(walk_.nodes_[keeper_].key, trace::source_hash(whole) + 2);
    walk_.visitor_.said({key, keeper_, std::move(whole), value});
  }

 private:
  PlacementWalk& walk_;
  std::uint32_t keeper_;
};

class PlacementWalk::Variables final : public LinkVisitor {
 public:
  explicit Variables(PlacementWalk& walk) : walk_(walk) {}
  bool link(const Link& link, void* object) override {
    walk_.add_variable(link, object);
    return !walk_.ended_;
  }

 private:
  PlacementWalk& walk_;
};

void PlacementWalk::run(const void* thread, const void* left, bool outside_modules) {
  outside_modules_ = outside_modules;
  nodes_.reserve(1024);
  seen_.reserve(4096);
  add_main_module();
  if (left != nullptr) add_frames(left);
  if (thread != nullptr) {
    add_frames(current_frame(thread));
    for_other_threads(thread, [this](const void* frame) {
      add_frames(frame);
      return !ended_;
    });
  }
  follow();
  visit_states();
}

void PlacementWalk::add_main_module() {
  const OwnAttributes main = attributes_of_module("__main__");
  if (!main || !is_dict(main.dict())) return;
  Variables variables(*this);
  std::ptrdiff_t at = 0;
  void* key = nullptr;
  void* value = nullptr;
  for (int k = 0; k < 4096 && python.PyDict_Next(main.dict(), &at, &key, &value) != 0; ++k) {
    if (value == nullptr || !is_text(key)) continue;
    if (!variables.link({LinkKind::global, 0, key}, value)) return;
  }
}

// Outermost first: what the program calls a model is a variable of the function that made it, rather than the `self` of
// whatever runs.
void PlacementWalk::add_frames(const void* innermost) {
  std::array<const void*, kMaxWalkedFrames> frames;
  std::size_t count = 0;
  for (const void* frame = innermost; frame != nullptr && count < frames.size(); frame = frame_previous(frame)) {
    const void* code = frame_code(frame);
    const std::uint32_t marks = code_table.marks(code);
    if (outside_modules_ && (marks & kTorchCode) != 0 && calls_module(code)) count = 0;
    if ((marks & (kNoCode | kTorchCode)) == 0) frames[count++] = frame;
  }
  Variables variables(*this);
  while (count > 0 && !ended_) visit_frame(frames[--count], false, variables);
}

PlacementWalk::What PlacementWalk::what_is(const void* object) {
  const auto [known, is_new] = types_.try_emplace(type_of(object), What::other);
  if (is_new) {
    if (is_container(object)) {
      known->second = What::container;
    } else if (derives_from(type_of(object), "Module", "register_parameter")) {
      known->second = What::module;
    } else if (derives_from(type_of(object), "Optimizer", "add_param_group")) {
      known->second = What::optimizer;
    } else if (has_settings(type_of(object))) {
      known->second = What::with_settings;
    }
  }
  return known->second;
}

bool PlacementWalk::is_worth_following(const void* object) const {
  if (is_container(object)) return !is_empty_container(object);
  if (is_type(object) || is_function(object) || is_text(object) || !is_heap_type(type_of(object))) return false;
  return has_instance_dict(object);
}

void PlacementWalk::add_variable(const Link& link, void* object) {
  if (!layout_.known()) layout_.learn_from(object);
  if (layout_.tensor_at(object) != nullptr || !is_worth_following(object)) return;
  const std::string name = link_name(link);
  const bool by_self = name == "self" || name == "cls";
  const What what = what_is(object);
  // Within a step a module may be on its way to the variable that will name it, as in its own `__init__`.
  if (by_self && outside_modules_ && what == What::module && !names_.knows(object)) return;
  const auto self = static_cast<std::uint32_t>(nodes_.size());
  if (!add_node(self, link, object, what, 0)) return;
  Node& node = nodes_[self];
  const std::string found = by_self ? std::string(short_type_name(object)) : name;
  node.root = node.what == What::module ? names_.name_for(object, found) : found;
  node.key = trace::source_hash(node.root);
}

// False where it was met before, or there is no room.
bool PlacementWalk::add_node(std::uint32_t parent, const Link& link, void* object, What what, std::uint8_t steps) {
  if (nodes_.size() >= kMaxWalkedObjects || (what == What::other && others_ >= kMaxOtherObjects)) {
    truncated_ = true;
    return false;
  }
  if (!seen_.try_emplace(object, true).second) return false;
  if (what == What::other) ++others_;
  const bool root = parent == nodes_.size();
  const std::uint64_t key = root ? 0 : mixed(nodes_[parent].key, link_hash(link));
  nodes_.push_back({object, parent, what, steps, !root && nodes_[parent].managed, link, key, {}});
  return true;
}

// Modules first: what they keep has its name from them, rather than from a list that a variable holds of it.
void PlacementWalk::follow() {
  std::vector<std::uint32_t> others;
  for (std::size_t next = 0; !ended_;) {
    for (; followed_ < nodes_.size() && !ended_; ++followed_) {
      if (nodes_[followed_].what == What::module) {
        visit_module(followed_);
      } else {
        others.push_back(followed_);
      }
    }
    if (ended_ || next == others.size()) return;
    visit_module(others[next++]);
  }
}

// What a module's attributes say of where its tensors belong: that something else decides, how many experts it has of
// how many ranks', and, of an entry of a ModuleList, which device is its own.
void PlacementWalk::read_attributes(std::uint32_t node, const Members& members) {
  const std::uint32_t parent = nodes_[node].parent;
  const bool listed = parent != node && nodes_[node].link.kind == LinkKind::child &&
                      short_type_name(nodes_[parent].object) == "ModuleList";
  for (const auto& [link, object] : members.all) {
    char buffer[64];
    if (link.kind != LinkKind::attribute || link.name == nullptr || object == python.none) continue;
    const std::string_view name = text_of(link.name, buffer, sizeof buffer);
    if (is_mark_of_manager(name)) nodes_[node].managed = true;
    Settings settings(*this, node);
    if (is_setting_of_experts(name)) visit_setting(name, object, settings);
    if (!listed) continue;
    if (const std::string device = device_said(object); !device.empty()) settings.setting(name, -1, device);
  }
}

// Any object: of modules and optimizers, members have a meaning.
void PlacementWalk::visit_module(std::uint32_t node) {
  const What what = nodes_[node].what;
  Members members;
  visit_links(const_cast<void*>(nodes_[node].object), members);
  if (what == What::module) {
    read_attributes(node, members);
    ended_ =
        ended_ || !visitor_.placed(
                      {nullptr, mixed(nodes_[node].key, 1), trace::PlaceKind::module, nodes_[node].managed, node, {}});
  }
  for (const auto& [link, object] : members.all) {
    if (ended_) return;
    char buffer[64];
    const bool attribute = link.kind == LinkKind::attribute && link.name != nullptr;
    const std::string_view name = attribute ? text_of(link.name, buffer, sizeof buffer) : std::string_view();
    if (what == What::optimizer && name == "param_groups") continue;
    if (what == What::with_settings && is_setting(name)) {
      Settings settings(*this, node);
      visit_setting(name, object, settings);
    }
    if (what == What::optimizer && name == "state") {
      visit_state(node, object);
    } else if (what != What::module || !is_machinery(name)) {
      member(node, link, object);
    }
  }
}

// The state of an optimizer: what it is about may be met later.
void PlacementWalk::visit_state(std::uint32_t node, const void* dict) {
  if (!is_dict(dict)) return;
  std::ptrdiff_t at = 0;
  void* key = nullptr;
  void* value = nullptr;
  while (states_.size() < kMaxWalkedObjects && python.PyDict_Next(const_cast<void*>(dict), &at, &key, &value) != 0) {
    if (value != nullptr && is_dict(value)) states_.push_back({node, key, value});
  }
}

void PlacementWalk::member(std::uint32_t node, const Link& link, void* object) {
  if (object == python.none) return;
  const bool is_parameter = link.kind == LinkKind::parameter;
  const bool is_buffer = link.kind == LinkKind::buffer;
  if (!layout_.known()) layout_.learn_from(object);
  if (const c10::TensorImpl* tensor = layout_.tensor_at(object)) {
    const auto kind = is_parameter ? trace::PlaceKind::parameter
                      : is_buffer  ? trace::PlaceKind::buffer
                                   : trace::PlaceKind::attribute;
    return place(node, link, object, tensor, kind);
  }
  if (!is_worth_following(object)) return;
  const What what = what_is(object);
  const bool goes_on = what == What::module || what == What::optimizer;
  const auto steps = static_cast<std::uint8_t>(nodes_[node].steps + 1);
  if (!goes_on && steps > kMaxWalkedSteps) return;
  const auto self = static_cast<std::uint32_t>(nodes_.size());
  if (!add_node(node, link, object, what, goes_on ? 0 : steps)) return;
  const bool child = link.kind == LinkKind::child && nodes_[node].what == What::module;
  if (what == What::module && !child) {
    nodes_[self].root = names_.name_for(object, path_of(self));
    nodes_[self].key = trace::source_hash(nodes_[self].root);
  }
}

void PlacementWalk::place(std::uint32_t node, const Link& link, const void* object, const c10::TensorImpl* tensor,
                          trace::PlaceKind kind) {
  if (!seen_.try_emplace(object, true).second) return;
  const std::uint64_t key = mixed(nodes_[node].key, link_hash(link));
  parameters_.try_emplace(object, Parameter{node, link, key});
  ended_ = ended_ || !visitor_.placed({tensor, key, kind, nodes_[node].managed, node, link});
}

void PlacementWalk::visit_states() {
  for (std::uint32_t k = 0; k < states_.size() && !ended_; ++k) {
    const Pending& state = states_[k];
    const auto known = parameters_.find(state.parameter);
    const std::uint64_t about = known != parameters_.end() ? known->second.key : mixed(nodes_[state.node].key, k);
    std::ptrdiff_t at = 0;
    void* key = nullptr;
    void* value = nullptr;
    for (int n = 0; n < 16 && python.PyDict_Next(const_cast<void*>(state.state), &at, &key, &value) != 0; ++n) {
      const c10::TensorImpl* tensor = value != nullptr && is_text(key) ? layout_.tensor_at(value) : nullptr;
      if (tensor == nullptr) continue;
      const Link link{LinkKind::key, static_cast<std::ptrdiff_t>(k), key, key};
      const bool managed = nodes_[state.node].managed;
      const std::uint64_t name = mixed(about, link_hash(link) + 1);
      if (!visitor_.placed({tensor, name, trace::PlaceKind::state, managed, state.node, link})) return;
    }
  }
}

std::string PlacementWalk::path_of(std::uint32_t index) const {
  const Node& node = nodes_[index];
  if (!node.root.empty() || node.parent == index) return node.root;
  std::string path = path_of(node.parent) + segment(node.link);
  if (path.starts_with('.')) path.erase(0, 1);
  if (path.size() > kMaxNameLength) path.resize(kMaxNameLength);
  return path;
}

std::string PlacementWalk::owner_of_state(const PlacedTensor& tensor) const {
  const auto& state = states_[static_cast<std::size_t>(tensor.link.index)];
  const auto known = parameters_.find(state.parameter);
  if (known == parameters_.end()) return path_of(state.node) + ".state[" + std::to_string(tensor.link.index) + "]";
  return path_of(known->second.keeper) + segment(known->second.link);
}

std::string PlacementWalk::owner_of(const PlacedTensor& tensor) const {
  return tensor.kind == trace::PlaceKind::state ? owner_of_state(tensor) : path_of(tensor.keeper);
}

std::string PlacementWalk::leaf_of(const PlacedTensor& tensor) const {
  if (tensor.kind == trace::PlaceKind::module) return {};
  if (tensor.kind == trace::PlaceKind::state) return link_name(tensor.link);
  std::string leaf = segment(tensor.link);
  if (leaf.starts_with('.')) leaf.erase(0, 1);
  return leaf;
}

std::string_view PlacementWalk::type_of_keeper(std::uint32_t node) const {
  // A list or dictionary is one of somebody's.
  while (nodes_[node].what == What::container && nodes_[node].parent != node) node = nodes_[node].parent;
  return short_type_name(nodes_[node].object);
}

}  // namespace devsan::hooks
