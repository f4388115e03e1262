// How the module that owns an operand is put together with others.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/module_weights.h"
#include "hooks/inprocess/evidence/waiting_calls.h"
#include "hooks/inprocess/interpreter/byte_code.h"
#include "hooks/inprocess/interpreter/own_attributes.h"
#include "hooks/inprocess/interpreter/python_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/large_page.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/snapshot/optimizer_state.h"
#include "hooks/inprocess/source/file_lines.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxFrames = 48;
constexpr std::size_t kMaxLookedAt = 256;

// The module that no other one has as a child, above `module`.
const void* root_of(const ObjectSearch& search, const void* module) {
  const std::vector<const Holding*> way = search.outwards(search.parent_module(module));
  return way.empty() ? module : way.back()->holder;
}

bool is_below(const ObjectSearch& search, const void* module, const void* root) {
  const auto is_in_root = [root](const Holding* at) { return at->holder == root; };
  return module == root || std::ranges::any_of(search.outwards(search.parent_module(module)), is_in_root);
}

// A way to an object through containers and objects that are no modules, from its end.
struct Way {
  const void* object;
  std::string path;
};

bool is_object_of_method(const Link& link) {
  return link.text != nullptr && std::string_view(link.text) == "__self__";
}

// A class that stores attributes by itself, as one does that can be frozen: `self.__dict__[name] = value` registers no
// module. Its only line that says so.
void find_own_setattr(const Inquiry& inquiry, std::size_t operand, const void* module) {
  const void* code = method_named(type_of(module), "__setattr__");
  if (code == nullptr || (code_table.marks(code) & (kTorchCode | kLibraryCode | kNoCode)) != 0) return;
  const trace::Position begin = position_of(code, 0);
  SourceFiles files;
  const SourceLines lines(files.whole(begin.file));
  const int first = code_first_line(code);
  int found = 0;
  for (int k = first + 1; k <= end_of_function(lines, first + 1); ++k) {
    const bool stores =
        lines[k].find("__dict__[") != std::string_view::npos && lines[k].find(" = ") != std::string_view::npos;
    if (!stores && lines[k].find("object.__setattr__(") == std::string_view::npos) continue;
    if (found != 0) return;
    found = k;
  }
  if (found == 0) return;
  inquiry.found.add(trace::EvidenceKind::own_setattr_at, operand,
                    position_at(begin.file, found, qualified_function(lines, found)), std::string(type_name(module)));
}

// The nearest module that keeps `root` otherwise than as a child; reports the attribute that begins the way there.
void find_unregistered(const Inquiry& inquiry, std::size_t operand, const void* root) {
  std::vector<Way> ways{{root, ""}};
  std::unordered_set<const void*> seen{root};
  for (std::size_t k = 0; k < ways.size() && ways.size() < kMaxLookedAt; ++k) {
    for (const Holding& holding : inquiry.search.holdings_of(ways[k].object)) {
      // A hook may mean any module, by its variables or as the method of an object.
      if (holding.link.kind == LinkKind::closure || is_object_of_method(holding.link)) continue;
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
      if (k == 0) find_own_setattr(inquiry, operand, holding.holder);
      return;
    }
  }
}

// The variable that the outermost module goes by, in the program's own frames; or else the only attribute of an object
// that keeps it, and is no module.
void find_module_binding(const Inquiry& inquiry, std::size_t operand, const void* root) {
  const std::uint32_t at = inquiry.search.find_place(root);
  if (at == kNoPlace) return;
  if (inquiry.search.is_root(at)) {
    const auto binding = binding_at(inquiry, operand, inquiry.search.place(at));
    if (binding) return inquiry.found.add(trace::EvidenceKind::module_bound_at, operand, binding->at, binding->name);
  }
  std::optional<Binding> kept;
  for (const Holding& holding : inquiry.search.holdings_of(root)) {
    const std::uint32_t place = inquiry.search.find_place(holding.holder);
    if (holding.link.kind != LinkKind::attribute || place == kNoPlace || is_torch_module(holding.holder)) continue;
    const auto stored = attribute_store(inquiry, operand, holding.holder, holding.link.name);
    if (!stored) continue;  // a bound method, which keeps its object, too
    if (kept) return;
    kept = Binding{*stored, inquiry.search.path_to(place) + written(holding.link)};
  }
  if (kept) inquiry.found.add(trace::EvidenceKind::module_bound_at, operand, kept->at, kept->name);
}

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
  for (const Holding* at : inquiry.search.outwards(inquiry.search.parent_module(owner))) {
    if (!Weights(inquiry.search, at->object).mostly_on(inquiry.operands[operand].device)) break;
    part = at;
  }
  if (part == nullptr) return;
  const auto stored = child_store(inquiry, operand, *part);
  if (!stored) return;
  inquiry.found.add(trace::EvidenceKind::module_put_at, operand, *stored,
                    std::string(type_name(part->holder)) + written(part->link));
}

// The outermost module of those that are being called.
const void* called_module(const Inquiry& inquiry) {
  const void* found = nullptr;
  const void* frame = inquiry.innermost;
  for (int depth = 0; frame != nullptr && depth < kMaxFrames; ++depth, frame = frame_previous(frame)) {
    if (const void* module = module_called(frame)) found = module;
  }
  return found != nullptr ? root_of(inquiry.search, found) : nullptr;
}

// The line that moved the weights of a module's children to where one of its own is missed: one line, so it was called
// for several of them, and not for the module around them.
class MovedChildren final : public LinkVisitor {
 public:
  MovedChildren(const Inquiry& inquiry, std::size_t operand, const void* module)
      : inquiry_(inquiry), operand_(operand) {
    visit_links(const_cast<void*>(module), *this);
    inside_ = true;
    for (void* child : children_) visit_links(child, *this);
  }
  trace::SiteId site() const { return moved_ >= kSeveral && !others_ ? site_ : trace::SiteId::none; }

  bool link(const Link& link, void* object) override {
    if (!inside_) {
      if (link.kind == LinkKind::child && children_.size() < kMaxLookedAt) children_.push_back(object);
      return true;
    }
    const c10::TensorImpl* tensor = link.kind == LinkKind::parameter ? inquiry_.search.tensor_at(object) : nullptr;
    const c10::StorageImpl* storage = tensor != nullptr ? storage_of(tensor) : nullptr;
    if (storage != nullptr) note(runtime.recorder->lineage(origin_table().find(storage)));
    return true;
  }

 private:
  static constexpr std::size_t kSeveral = 2;

  void note(const trace::LineageNode& node) {
    const bool moved = node.how == trace::How::moved && inquiry_.is_wanted(operand_, node.device);
    const bool same = site_ == trace::SiteId::none || same_line(node.site);
    others_ = others_ || !moved || !same;
    if (moved && site_ == trace::SiteId::none) site_ = node.site;
    ++moved_;
  }
  bool same_line(trace::SiteId site) const {
    const trace::Position one = runtime.recorder->site(site).user;
    const trace::Position other = runtime.recorder->site(site_).user;
    return one.file == other.file && one.line == other.line;
  }

  const Inquiry& inquiry_;
  const std::size_t operand_;
  std::vector<void*> children_;
  bool inside_ = false;
  trace::SiteId site_ = trace::SiteId::none;
  std::size_t moved_ = 0;
  bool others_ = false;
};

// "learner.encoder" of `learner.encoder if shared else build()`.
bool gives_attribute(std::string_view value, std::string_view name) {
  constexpr std::string_view kIf = " if ";
  constexpr std::string_view kElse = " else ";
  const std::size_t condition = value.find(kIf);
  const std::size_t other = condition != value.npos ? value.find(kElse, condition) : value.npos;
  if (other != value.npos) {
    return gives_attribute(value.substr(0, condition), name) ||
           gives_attribute(value.substr(other + kElse.size()), name);
  }
  const std::string_view path = trimmed(value);
  const std::size_t dot = path.rfind('.');
  return dot != path.npos && dot > 0 && path.substr(dot + 1) == name && is_path(path);
}

// `other.name = module.name`: the module of that name goes to another object, by the same name or by others.
struct Shares {
  std::vector<Candidate> by_name;
  std::vector<Candidate> renamed;
};

void add_shares(Shares& shares, const void* code, const void* name) {
  if (!mentions(code, name)) return;
  const ByteCode byte_code(code);
  const std::string wanted = text_of(name);
  const auto& all = byte_code.instructions();
  FileLines files;
  for (std::size_t k = 1; k < all.size(); ++k) {
    if (all[k].operation != Operation::store_attribute || all[k - 1].operation != Operation::load_variable) continue;
    const trace::Position at = position_of(code, all[k].offset);
    const std::string receiver = text_of(all[k - 1].operand);
    const std::string target = receiver + "." + text_of(all[k].operand);
    const auto value = assigned_to(statement_at(files.of(at.file), at.line), target);
    // A second name in the same object gives it to nobody.
    if (!value || !gives_attribute(*value, wanted) || value->starts_with(receiver + ".")) continue;
    (same_name(all[k].operand, name) ? shares.by_name : shares.renamed).push_back({at, true});
  }
}

// The only `nn.DataParallel(…)` of the program, where that is what is around all of the model.
void find_replicas_made(const Inquiry& inquiry, std::size_t operand, const void* root) {
  constexpr std::string_view kReplicas = "DataParallel";
  if (type_name(root) != kReplicas) return;
  const auto calls = [&](std::string_view line) { return call_in(line, kReplicas) != line.npos; };
  if (const auto at = only_load(inquiry, kReplicas, calls)) {
    inquiry.found.add(trace::EvidenceKind::replicas_made_at, operand, *at, "");
  }
}

// `functional_call(template, weights, x)` lends a module the tensors of a dictionary for one call.
bool is_lent(const Inquiry& inquiry, std::size_t operand) {
  const std::uint32_t at = inquiry.search.sighting(operand).place;
  if (at == kNoPlace || !is_entry(inquiry.search.place(at).link.kind)) return false;
  const void* frame = inquiry.innermost;
  for (int depth = 0; frame != nullptr && depth < kMaxFrames; ++depth, frame = frame_previous(frame)) {
    if (!runs_python(frame)) continue;
    if (is_name(field<const void*>(frame_code(frame), code_members.name), "_functional_call")) return true;
  }
  return false;
}

}  // namespace

void find_shared_module(const Inquiry& inquiry, std::size_t operand) {
  const Holding* owner = inquiry.owner_of(operand);
  if (owner == nullptr) return;
  for (const Holding* at : inquiry.search.outwards(inquiry.search.parent_module(owner->holder))) {
    Shares shares;
    for (const void* code : inquiry.own_code.code()) add_shares(shares, code, at->link.name);
    const std::vector<Candidate>& candidates = shares.by_name.empty() ? shares.renamed : shares.by_name;
    if (candidates.empty()) continue;
    const auto position = choose(inquiry, operand, candidates);
    if (position) {
      inquiry.found.add(trace::EvidenceKind::module_shared_at, operand, *position, written(at->link).substr(1));
    }
    return;
  }
}

void find_moved_children(const Inquiry& inquiry, std::size_t operand) {
  const Holding* owner = inquiry.owner_of(operand);
  if (owner == nullptr) return;
  const MovedChildren children(inquiry, operand, owner->holder);
  if (children.site() == trace::SiteId::none) return;
  const trace::Position moved = runtime.recorder->site(children.site()).user;
  inquiry.found.add(trace::EvidenceKind::children_moved_at, operand, loop_around(moved).value_or(moved),
                    type_name(owner->holder));
}

bool is_torch_module(const void* object) noexcept {
  if (is_container(object) || !leads_on(object) || !has_instance_dict(object)) {
    return false;
  }
  const OwnAttributes attributes(object);
  return std::ranges::all_of(std::array{"_parameters", "_buffers", "_modules"}, [&](const char* part) {
    const void* entries = attributes[part];
    return entries != nullptr && is_dict(entries);
  });
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
  if (is_lent(inquiry, operand)) return;
  const void* tensor = inquiry.viewed_by(operand);
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
  find_module_made(inquiry, operand, root);
  find_module_copy(inquiry, operand, root);
  find_replicas_made(inquiry, operand, root);
  if (find_weights_elsewhere(inquiry, operand, root)) find_part_of_model(inquiry, operand, owner->holder);
}

}  // namespace devsan::hooks
