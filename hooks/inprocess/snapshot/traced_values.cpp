#include "hooks/inprocess/snapshot/traced_values.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "hooks/inprocess/bridge/tensor_objects.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/snapshot/named_objects.h"
#include "hooks/inprocess/snapshot/object_graph.h"
#include "hooks/inprocess/snapshot/object_members.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxNodes = 1 << 16;
constexpr std::ptrdiff_t kMaxTracers = 32;
constexpr int kMaxDepth = 32;
constexpr std::ptrdiff_t kReferred = 16;  // PyWeakReference::wr_object
constexpr std::ptrdiff_t kMaxInputs = 256;

void* referred_by(const void* reference) noexcept {
  if (reference == nullptr || !type_name(reference).starts_with("weakref")) return nullptr;
  void* object = field<void*>(reference, kReferred);
  return object == python.none ? nullptr : object;
}

void* entry_of_meta(const void* node, std::string_view name) noexcept {
  void* found = dict_entry(member_of(node, "meta"), name);
  return found == python.none ? nullptr : found;
}

// ".member", "[3]" or "['key']"; empty for a step of another kind.
std::string step_text(const void* source) {
  if (const std::string_view member = text_member_of(source, "member"); !member.empty()) {
    return "." + std::string(member);
  }
  void* index = member_of(source, "index");
  if (index == nullptr) return "";
  if (is_text(index)) return "['" + text_of(index) + "']";
  const std::optional<long> number = integer_in(index);
  return number ? "[" + std::to_string(*number) + "]" : "";
}

void* without_cell(void* object) noexcept {
  return object != nullptr && is_builtin(object, "cell") ? field<void*>(object, kCellContent) : object;
}

}  // namespace

DeviceKey fake_device(const void* object) noexcept {
  if (!is_instance_of(object, "FakeTensor")) return 0;
  for (const char* name : {"fake_device", "_fake_device"}) {
    if (const void* device = member_of(object, name)) return device_in(device);
  }
  return 0;
}

// Higher-order operators have graphs of their own within the one around them.
TracedValues::TracedValues(const TracedCall& call) : root_(call.root()) {
  read_graph(member_of(call.node, "graph"));
  const void* tracers = member_of(member_of(root_, "output"), "tracers");
  if (tracers == nullptr || !is_list(tracers)) return;
  for (std::ptrdiff_t k = std::min(size_of(tracers), kMaxTracers); k-- > 0;) {
    read_graph(member_of(field<const void* const*>(tracers, kListItems)[k], "graph"));
  }
}

void TracedValues::read_graph(const void* graph) {
  const void* end = member_of(graph, "_root");
  const void* node = end;
  for (int k = 0; k < kMaxNodes; ++k) {
    node = member_of(node, "_next");
    if (node == nullptr || node == end) return;
    const void* fake = fake_of(node);
    if (fake == nullptr) continue;
    const auto [known, is_new] = nodes_.try_emplace(fake, node);
    if (!is_new && inputs_of(known->second).empty() && real_of_node(known->second) == nullptr) known->second = node;
  }
}

const void* TracedValues::node_of(const void* fake) const {
  const auto found = nodes_.find(fake);
  return found != nodes_.end() ? found->second : nullptr;
}

void* TracedValues::fake_of(const void* node) noexcept {
  void* value = entry_of_meta(node, "example_value");
  return is_instance_of(value, "FakeTensor") ? value : nullptr;
}

// torch._dynamo.variables.builder.GraphArg: it refers to the tensor weakly, as torch.utils.weak.TensorWeakRef does.
void* TracedValues::real_of_node(const void* node) noexcept {
  const void* example = member_of(entry_of_meta(node, "grapharg"), "_example");
  void* object = referred_by(member_of(example, "ref"));
  if (object == nullptr || is_instance_of(object, "FakeTensor") || tensor_of(object) == nullptr) return nullptr;
  return object;
}

void* TracedValues::real_of(const void* fake) const {
  const void* node = node_of(fake);
  return node != nullptr ? real_of_node(node) : nullptr;
}

std::vector<const void*> TracedValues::inputs_of(const void* node) {
  std::vector<const void*> inputs;
  void* const dict = member_of(node, "_input_nodes");
  if (dict == nullptr || !is_dict(dict)) return inputs;
  std::ptrdiff_t at = 0;
  void* key = nullptr;
  void* value = nullptr;
  for (std::ptrdiff_t k = 0; k < kMaxInputs && python.PyDict_Next(dict, &at, &key, &value) != 0; ++k) {
    if (is_instance_of(key, "Node")) inputs.push_back(key);
  }
  return inputs;
}

void* TracedValues::object_of(const void* variable, int depth) const {
  if (variable == nullptr || variable == python.none || depth > kMaxDepth) return nullptr;
  if (const void* cache = member_of(variable, "_cache"); is_instance_of(cache, "LazyCache")) {
    if (const void* known = member_of(cache, "vt")) return object_of(known, depth + 1);
    if (void* value = member_of(cache, "value")) return value;
  }
  if (is_instance_of(variable, "CellVariable")) return cell_content(variable, depth + 1);
  if (const void* node = member_of(member_of(variable, "proxy"), "node")) {
    void* real = real_of_node(node);
    return real != nullptr ? real : fake_of(node);
  }
  for (const char* name : {"value", "fn"}) {
    if (void* object = member_of(variable, name)) return object;
  }
  return object_at(member_of(variable, "source"), depth + 1);
}

// What the function has put there stands with the effects that are still to be applied.
void* TracedValues::cell_content(const void* variable, int depth) const {
  void* cells = member_of(member_of(member_of(root_, "output"), "side_effects"), "store_attr_mutations");
  std::ptrdiff_t at = 0;
  void* key = nullptr;
  void* value = nullptr;
  while (cells != nullptr && is_dict(cells) && python.PyDict_Next(cells, &at, &key, &value) != 0) {
    if (key != variable) continue;
    if (const void* content = dict_entry(value, "cell_contents")) return object_of(content, depth);
  }
  return object_of(member_of(variable, "pre_existing_contents"), depth);
}

// Where dynamo says that it took an object from: torch._dynamo.source.Source and those derived from it.
void* TracedValues::object_at(const void* source, int depth) const {
  if (source == nullptr || depth > kMaxDepth) return nullptr;
  if (const std::string_view name = text_member_of(source, "local_name"); !name.empty()) {
    return without_cell(dict_entry(member_of(root_, "f_locals"), name));
  }
  if (const std::string_view name = text_member_of(source, "global_name"); !name.empty()) {
    return dict_entry(member_of(root_, "f_globals"), name);
  }
  void* object = object_at(member_of(source, "base"), depth + 1);
  const std::string step = step_text(source);
  if (object == nullptr || step.empty()) return type_name(source).ends_with("NNModuleSource") ? object : nullptr;
  std::string_view rest = step;
  return next_object(nullptr, object, rest);
}

}  // namespace devsan::hooks
