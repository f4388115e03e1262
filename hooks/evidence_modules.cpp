// How the module that owns an operand is put together with others.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "hooks/byte_code.h"
#include "hooks/code_table.h"
#include "hooks/evidence.h"
#include "hooks/optimizer_state.h"
#include "hooks/python_frames.h"
#include "hooks/python_text.h"
#include "hooks/runtime.h"
#include "hooks/sites.h"
#include "hooks/source_files.h"
#include "hooks/tensor_fields.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxDepth = 32;
constexpr int kMaxFrames = 48;
constexpr std::size_t kMaxLookedAt = 256;

// The module that no other one has as a child, above `module`.
const void* root_of(const ObjectSearch& search, const void* module) {
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    const Holding* parent = search.parent_module(module);
    if (parent == nullptr) break;
    module = parent->holder;
  }
  return module;
}

bool is_below(const ObjectSearch& search, const void* module, const void* root) {
  for (int depth = 0; depth < kMaxDepth && module != nullptr; ++depth) {
    if (module == root) return true;
    const Holding* parent = search.parent_module(module);
    module = parent != nullptr ? parent->holder : nullptr;
  }
  return false;
}

// A way to an object through containers and objects that are no modules, from its end.
struct Way {
  const void* object;
  std::string path;
};

// The nearest module that keeps `root` otherwise than as a child; reports the attribute that begins the way there.
void find_unregistered(const Inquiry& inquiry, std::size_t operand, const void* root) {
  std::vector<Way> ways{{root, ""}};
  std::unordered_set<const void*> seen{root};
  for (std::size_t k = 0; k < ways.size() && ways.size() < kMaxLookedAt; ++k) {
    for (const Holding& holding : inquiry.search.holdings_of(ways[k].object)) {
      if (holding.link.kind == LinkKind::closure) continue;  // a hook may mean any module
      if (!seen.insert(holding.holder).second) continue;
      const std::string path = written(holding.link) + ways[k].path;
      if (!is_torch_module(holding.holder)) {
        ways.push_back({holding.holder, path});
        continue;
      }
      if (holding.link.kind != LinkKind::attribute || is_below(inquiry.search, holding.holder, root)) continue;
      const auto at = attribute_store(inquiry, operand, holding.holder, holding.link.name);
      inquiry.found.add(trace::EvidenceKind::module_not_registered, operand, at.value_or(trace::Position{}),
                        std::string(type_name(holding.holder)) + path);
      return;
    }
  }
}

// The variable that the outermost module goes by, in the program's own frames.
void find_module_binding(const Inquiry& inquiry, std::size_t operand, const void* root) {
  const std::uint32_t at = inquiry.search.find_place(root);
  if (at == kNoPlace || !inquiry.search.is_root(at)) return;
  const auto binding = binding_at(inquiry, operand, inquiry.search.place(at));
  if (binding) inquiry.found.add(trace::EvidenceKind::module_bound_at, operand, binding->at, binding->name);
}

// On which devices the parameters and buffers at and below a module are.
class Weights final : public LinkVisitor {
 public:
  Weights(const ObjectSearch& search, const void* root) : search_(search) {
    modules_.push_back(root);
    for (std::size_t k = 0; k < modules_.size() && all_ < kMaxWeights; ++k) {
      visit_links(const_cast<void*>(modules_[k]), *this);
    }
  }

  // The device that more than half of several are on; none without one.
  trace::DeviceSlot usual() const {
    for (const auto& [device, count] : counts_) {
      if (all_ >= kSeveral && count * 2 > all_) return device;
    }
    return trace::DeviceSlot::none;
  }
  // At least half of them.
  bool mostly_on(trace::DeviceSlot device) const {
    const auto found = counts_.find(device);
    return found != counts_.end() && found->second * 2 >= all_;
  }
  std::string share_of(trace::DeviceSlot device) const {
    return std::to_string(counts_.at(device)) + " of " + std::to_string(all_);
  }

  bool some_on(trace::DeviceSlot device) const { return counts_.contains(device); }

  bool link(const Link& link, void* object) override {
    if (link.kind == LinkKind::child && modules_.size() < kMaxWeights && seen_.insert(object).second) {
      modules_.push_back(object);
    }
    if (link.kind != LinkKind::parameter && link.kind != LinkKind::buffer) return true;
    const c10::TensorImpl* tensor = search_.tensor_at(object);
    if (tensor == nullptr || !seen_.insert(object).second) return true;
    ++counts_[device_slot(TensorFields::device(tensor))];
    ++all_;
    return true;
  }

 private:
  static constexpr std::size_t kMaxWeights = 20000;
  static constexpr std::size_t kSeveral = 4;

  const ObjectSearch& search_;
  std::vector<const void*> modules_;
  std::unordered_set<const void*> seen_;
  std::map<trace::DeviceSlot, std::size_t> counts_;
  std::size_t all_ = 0;
};

// A weight that is not where most of its model is.
bool find_weights_elsewhere(const Inquiry& inquiry, std::size_t operand, const void* root) {
  const Weights weights(inquiry.search, root);
  const trace::DeviceSlot usual = weights.usual();
  if (usual == trace::DeviceSlot::none || usual == inquiry.operands[operand].device) return false;
  std::string text(runtime.recorder->string(runtime.recorder->device_name(usual)));
  text += " " + weights.share_of(usual) + " " + std::string(type_name(root));
  inquiry.found.add(trace::EvidenceKind::weights_elsewhere, operand, {}, text);
  return true;
}

// Where a child was stored in its parent: by the line that makes one of its type, where several store such a child.
std::optional<trace::Position> child_store(const Inquiry& inquiry, std::size_t operand, const Holding& child) {
  const std::vector<Candidate> candidates = attribute_stores(inquiry, child.holder, child.link.name);
  if (const auto chosen = choose(inquiry, operand, candidates)) return chosen;
  std::string_view type = type_name(child.object);
  type.remove_prefix(type.rfind('.') + 1);
  std::optional<trace::Position> found;
  SourceFiles files;
  for (const Candidate& one : candidates) {
    const SourceLines lines(files.whole(one.at.file));
    if (call_in(statement_at(lines, one.at.line), type) == std::string::npos) continue;
    if (found && (found->line != one.at.line || found->file != one.at.file)) return std::nullopt;
    found = one.at;
  }
  return found;
}

// The largest part of the model that is mostly where the weight is.
void find_part_of_model(const Inquiry& inquiry, std::size_t operand, const void* owner) {
  const Holding* part = nullptr;
  const Holding* at = inquiry.search.parent_module(owner);
  for (int depth = 0; at != nullptr && depth < kMaxDepth; ++depth) {
    if (!Weights(inquiry.search, at->object).mostly_on(inquiry.operands[operand].device)) break;
    part = at;
    at = inquiry.search.parent_module(at->holder);
  }
  if (part == nullptr) return;
  const auto stored = child_store(inquiry, operand, *part);
  if (!stored) return;
  inquiry.found.add(trace::EvidenceKind::module_put_at, operand, *stored,
                    std::string(type_name(part->holder)) + written(part->link));
}

// The first argument of a function that runs, where it is a module.
class FirstArgument final : public LinkVisitor {
 public:
  explicit FirstArgument(const void* frame) {
    if (const void* code = frame_code(frame); code != nullptr && code_arguments(code) > 0) {
      name_ = code_local_name(code, 0);
      visit_frame(frame, false, *this);
    }
  }
  const void* module() const { return module_; }
  bool link(const Link& link, void* object) override {
    if (link.name != name_) return true;
    if (is_torch_module(object)) module_ = object;
    return false;
  }

 private:
  const void* name_ = nullptr;
  const void* module_ = nullptr;
};

// The outermost module of those that are being called.
const void* called_module(const Inquiry& inquiry) {
  const void* found = nullptr;
  const void* frame = inquiry.innermost;
  for (int depth = 0; frame != nullptr && depth < kMaxFrames; ++depth, frame = frame_previous(frame)) {
    const void* code = frame_code(frame);
    if (code == nullptr || type_of(code) != python.code_type || (code_table.marks(code) & kNoCode) != 0) continue;
    if (const void* module = FirstArgument(frame).module()) found = module;
  }
  return found != nullptr ? root_of(inquiry.search, found) : nullptr;
}

// `other.name = module.name`: a module of that name in another object.
void add_shares(std::vector<Candidate>& candidates, const void* code, const void* name) {
  if (!mentions(code, name)) return;
  const ByteCode byte_code(code);
  const auto& all = byte_code.instructions();
  for (std::size_t k = 2; k < all.size(); ++k) {
    if (all[k].operation != Operation::store_attribute || all[k - 1].operation != Operation::load_variable) continue;
    const Instruction& value = all[k - 2];
    if (value.operation != Operation::load_attribute || !same_name(value.operand, name)) continue;
    candidates.push_back({position_of(code, all[k].offset), true});
  }
}

}  // namespace

void find_shared_module(const Inquiry& inquiry, std::size_t operand) {
  const Holding* at = inquiry.search.owner(inquiry.identities[operand].object);
  if (at == nullptr) return;
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    at = inquiry.search.parent_module(at->holder);
    if (at == nullptr) return;
    std::vector<Candidate> candidates;
    for (const void* code : inquiry.own_code.code()) add_shares(candidates, code, at->link.name);
    if (candidates.empty()) continue;
    const auto position = choose(inquiry, operand, candidates);
    if (position) {
      inquiry.found.add(trace::EvidenceKind::module_shared_at, operand, *position, written(at->link).substr(1));
    }
    return;
  }
}

bool is_torch_module(const void* object) noexcept {
  if (is_list(object) || is_tuple(object) || is_dict(object) || !leads_on(object) || !has_instance_dict(object)) {
    return false;
  }
  void* dict = python.PyObject_GenericGetDict(const_cast<void*>(object), nullptr);
  if (dict == nullptr) return false;
  bool module = is_dict(dict);
  for (const char* part : {"_parameters", "_buffers", "_modules"}) {
    const void* entries = module ? dict_entry(dict, part) : nullptr;
    module = entries != nullptr && is_dict(entries);
  }
  python.Py_DecRef(dict);
  return module;
}

void find_spread_model(const Inquiry& inquiry, std::size_t operand) {
  const trace::DeviceSlot device = inquiry.operands[operand].device;
  const auto differs = [&](const trace::OperandRecord& other) { return other.device != device; };
  const auto other = std::ranges::find_if(inquiry.operands, differs);
  const void* root = other != inquiry.operands.end() ? called_module(inquiry) : nullptr;
  if (root == nullptr) return;
  const Weights weights(inquiry.search, root);
  if (!weights.some_on(device) || !weights.some_on(other->device)) return;
  inquiry.found.add(trace::EvidenceKind::model_spread, operand, {}, type_name(root));
}

void find_modules(const Inquiry& inquiry, std::size_t operand) {
  const void* tensor = inquiry.identities[operand].object;
  const Holding* owner = inquiry.search.owner(tensor);
  if (owner == nullptr) return;
  const void* root = root_of(inquiry.search, owner->holder);
  if (root != owner->holder) {
    inquiry.found.add(trace::EvidenceKind::root_name, operand, {}, name_in_modules(inquiry.search, tensor));
  }
  for (const Holding& other : inquiry.search.other_owners(tensor)) {
    const std::uint32_t place = inquiry.search.find_place(other.holder);
    if (place == kNoPlace) continue;
    inquiry.found.add(trace::EvidenceKind::tied_to, operand, {}, inquiry.search.path_to(place) + written(other.link));
  }
  find_unregistered(inquiry, operand, root);
  find_module_binding(inquiry, operand, root);
  if (find_weights_elsewhere(inquiry, operand, root)) find_part_of_model(inquiry, operand, owner->holder);
}

}  // namespace devsan::hooks
