// Who keeps an operand as an attribute, and where that attribute was stored.
#include <algorithm>
#include <utility>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/interpreter/byte_code.h"
#include "hooks/inprocess/interpreter/code_table.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/interpreter/variable_stores.h"
#include "hooks/inprocess/provenance/lineage_nodes.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"
#include "trace/function_names.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxFrames = 24;
constexpr int kMaxLinks = 8;

bool is_attribute(LinkKind kind) noexcept {
  return kind == LinkKind::attribute || kind == LinkKind::child || kind == LinkKind::parameter ||
         kind == LinkKind::buffer;
}

// `receiver.name = value` in byte code: the value, the receiver, and the store.
struct AttributeStore {
  int offset = 0;
  const void* receiver = nullptr;  // the variable; null where it is an expression
  bool constant = false;           // None, or a number: no tensor, and nothing that leads to one
};

bool calls_setattr(const void* code) {
  return mentions_text(code, "setattr") || mentions_text(code, "__setattr__");
}

// `setattr(receiver, "name", value)`, `object.__setattr__(receiver, "name", value)`: the places of the names.
std::vector<AttributeStore> stores_by_call(const void* code, const void* name) {
  std::vector<AttributeStore> stores;
  const ByteCode byte_code(code);
  const auto& all = byte_code.instructions();
  for (std::size_t k = 2; k + 1 < all.size(); ++k) {
    if (all[k].operation != Operation::load_constant || !same_name(all[k].operand, name)) continue;
    if (all[k - 1].operation != Operation::load_variable) continue;
    if (!loads_name(all[k - 2], "setattr") && !loads_name(all[k - 2], "__setattr__")) continue;
    stores.push_back({all[k].offset, all[k - 1].operand, all[k + 1].operation == Operation::load_constant});
  }
  return stores;
}

std::vector<AttributeStore> stores_of_attribute(const void* code, const void* name) {
  std::vector<AttributeStore> stores;
  if (calls_setattr(code)) stores = stores_by_call(code, name);
  if (!mentions(code, name)) return stores;
  const ByteCode byte_code(code);
  const auto& all = byte_code.instructions();
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (all[k].operation != Operation::store_attribute || !same_name(all[k].operand, name)) continue;
    AttributeStore store{all[k].offset};
    if (k >= 1 && all[k - 1].operation == Operation::load_variable) store.receiver = all[k - 1].operand;
    store.constant = k >= 2 && store.receiver != nullptr && all[k - 2].operation == Operation::load_constant;
    stores.push_back(store);
  }
  return stores;
}

// What a variable refers to in a function that runs now.
class VariableValue final : public LinkVisitor {
 public:
  VariableValue(const void* frame, const void* name) : name_(name) {
    visit_frame(frame, is_module_body(frame_code(frame)), *this);
  }
  const void* value() const { return value_; }
  bool link(const Link& link, void* object) override {
    if (!same_name(link.name, name_)) return true;
    value_ = object;
    return false;
  }

 private:
  const void* name_;
  const void* value_ = nullptr;
};

enum class Receiver { holder, other, unknown };

// Whether the variable `name` of a function is the holder: told by a frame that runs the function.
Receiver receiver_in_frames(const void* innermost, const void* code, const void* name, const void* holder) {
  const void* frame = innermost;
  for (int depth = 0; frame != nullptr && depth < kMaxFrames; ++depth, frame = frame_previous(frame)) {
    if (frame_code(frame) != code) continue;
    const VariableValue variable(frame, name);
    if (variable.value() == nullptr) return Receiver::unknown;
    return variable.value() == holder ? Receiver::holder : Receiver::other;
  }
  return Receiver::unknown;
}

// The methods of the holder's type store by their first argument.
void add_stores_by_type(std::vector<Candidate>& candidates, std::vector<const void*>& looked_at, const void* holder,
                        const void* name) {
  for (const void* function : functions_of_type(type_of(holder))) {
    const void* code = code_of_function(function);
    if (code_arguments(code) < 1 || (code_table.classify(code) & kTorchCode) != 0) continue;
    looked_at.push_back(code);
    for (const AttributeStore& store : stores_of_attribute(code, name)) {
      if (store.constant || !same_name(store.receiver, code_local_name(code, 0))) continue;
      candidates.push_back({position_of(code, store.offset), true});
    }
  }
}

// Anybody else may store it, too. What a method stores by its first argument belongs to that method's class.
void add_stores_by_others(std::vector<Candidate>& candidates, const std::vector<const void*>& looked_at,
                          const Inquiry& inquiry, const void* holder, const void* name) {
  for (const void* code : inquiry.own_code.code()) {
    if (std::ranges::find(looked_at, code) != looked_at.end()) continue;
    for (const AttributeStore& store : stores_of_attribute(code, name)) {
      if (store.constant || is_name(store.receiver, "self")) continue;
      const Receiver receiver = store.receiver == nullptr
                                    ? Receiver::unknown
                                    : receiver_in_frames(inquiry.innermost, code, store.receiver, holder);
      if (receiver != Receiver::other) {
        candidates.push_back({position_of(code, store.offset), receiver == Receiver::holder});
      }
    }
  }
}

// `setattr(receiver, name, value)` with a name that is put together may store any attribute: the one in question where
// the same line made the value.
std::vector<Candidate> stores_by_computed_name(const Inquiry& inquiry) {
  std::vector<Candidate> candidates;
  for (const void* code : inquiry.own_code.code()) {
    if (!calls_setattr(code)) continue;
    const ByteCode byte_code(code);
    for (const Instruction& one : byte_code.instructions()) {
      if (loads_name(one, "setattr") || loads_name(one, "__setattr__")) {
        candidates.push_back({position_of(code, one.offset), false});
      }
    }
  }
  return candidates;
}

// Of several lines, none is known to be the one.
void add_perhaps_stored(const Inquiry& inquiry, std::size_t operand, const std::vector<Candidate>& candidates,
                        const std::string& path) {
  constexpr std::size_t kMostLines = 4;  // more than that tell nobody anything
  if (candidates.size() > kMostLines) return;
  for (const Candidate& one : candidates) {
    inquiry.found.add(trace::EvidenceKind::perhaps_stored_at, operand, one.at, path);
  }
}

// `self.state = torch.zeros(0)`, where every other line that stores the attribute makes the new value of the old one,
// as `self.state = torch.zeros_like(self.state)` does: the value's device is the one that it began with.
void find_attribute_begun(const Inquiry& inquiry, std::size_t operand, const std::vector<Candidate>& candidates,
                          const std::string& attribute, const std::string& path) {
  SourceFiles files;
  std::optional<trace::Position> begun;
  for (const Candidate& one : candidates) {
    if (!one.certain) return;
    const std::string statement = statement_at(SourceLines(files.whole(one.at.file)), one.at.line);
    const auto value = assigned_to(statement, "self" + attribute);
    if (!value) return;
    if (mentions_name(*value, "self" + attribute)) continue;
    if (begun && !same_line(*begun, one.at)) return;
    begun = one.at;
  }
  if (begun) inquiry.found.add(trace::EvidenceKind::attribute_begun_at, operand, *begun, path);
}

std::string type_and(const void* holder, const std::string& path) {
  const char* name = is_type(holder) ? field<const char*>(holder, kTypeName) : nullptr;
  return std::string(name != nullptr ? std::string_view(name) : type_name(holder)) + path;
}

// The only line of a module's constructors that stores an attribute, be it None.
std::optional<trace::Position> declared_at(const void* module, const void* name) {
  std::optional<trace::Position> found;
  for (const void* function : functions_of_type(type_of(module))) {
    const void* code = code_of_function(function);
    if (!is_name(field<const void*>(code, code_members.name), "__init__") || code_arguments(code) < 1) continue;
    for (const AttributeStore& store : stores_of_attribute(code, name)) {
      if (!same_name(store.receiver, code_local_name(code, 0))) continue;
      const trace::Position at = position_of(code, store.offset);
      if (found && !same_line(*found, at)) return std::nullopt;
      found = at;
    }
  }
  return found;
}

}  // namespace

std::vector<Candidate> attribute_stores(const Inquiry& inquiry, const void* holder, const void* name) {
  std::vector<Candidate> candidates;
  std::vector<const void*> looked_at;
  if (name == nullptr) return candidates;
  add_stores_by_type(candidates, looked_at, holder, name);
  add_stores_by_others(candidates, looked_at, inquiry, holder, name);
  return candidates;
}

std::optional<trace::Position> attribute_store(const Inquiry& inquiry, std::size_t operand, const void* holder,
                                               const void* name) {
  if (const auto computed = choose(inquiry, operand, stores_by_computed_name(inquiry))) return computed;
  return choose(inquiry, operand, attribute_stores(inquiry, holder, name));
}

void find_attribute_stores(const Inquiry& inquiry, std::size_t operand) {
  const ObjectSearch& search = inquiry.search;
  std::uint32_t at = search.sighting(operand).place;
  bool nearest = true;
  for (int links = 0; at != kNoPlace && !search.is_root(at) && links < kMaxLinks; ++links) {
    const Place& place = search.place(at);
    at = place.parent;
    if (!is_attribute(place.link.kind)) continue;
    const void* holder = search.place(at).object;
    const std::string path = type_and(holder, written(place.link));
    // A name that is put together is that of what the line made, and not of an object around it.
    const bool innermost = std::exchange(nearest, false);
    const auto candidates = attribute_stores(inquiry, holder, place.link.name);
    auto stored = innermost ? choose(inquiry, operand, stores_by_computed_name(inquiry)) : std::nullopt;
    if (!stored) stored = choose(inquiry, operand, candidates);
    if (innermost && !stored) stored = taken_as_loaded(inquiry, operand, candidates, place.link.name);
    if (stored) inquiry.found.add(trace::EvidenceKind::attribute_set_at, operand, *stored, path);
    if (innermost && candidates.size() > 1)
      find_attribute_begun(inquiry, operand, candidates, written(place.link), path);
    if (!stored && innermost) add_perhaps_stored(inquiry, operand, candidates, path);
    const bool plain = innermost && place.link.kind == LinkKind::attribute;
    const auto declared = plain && is_torch_module(holder) ? declared_at(holder, place.link.name) : std::nullopt;
    if (declared && !(stored && same_line(*stored, *declared))) {
      inquiry.found.add(trace::EvidenceKind::declared_at, operand, *declared, path);
    }
  }
}

// An entry of a list or dict that a global variable keeps: `masks[key]`. False where it is none.
bool add_entry_of_global(const Inquiry& inquiry, std::size_t operand, const Holding& holding) {
  if (!is_entry(holding.link.kind)) return false;
  const std::uint32_t at = inquiry.search.find_place(holding.holder);
  if (at == kNoPlace || !inquiry.search.is_root(at)) return false;
  const Link& variable = inquiry.search.place(at).link;
  if (variable.kind != LinkKind::global) return false;
  inquiry.found.add(trace::EvidenceKind::held_by_global, operand, {}, written(variable));
  return true;
}

// Whether a step of an operand's history, where it was made perhaps, stands on a line or in a comprehension of it.
bool was_made_on(const Inquiry& inquiry, std::size_t operand, const trace::Position& at) {
  const auto around = [](const trace::Position& one) {
    return trace::function_around(runtime.recorder->string(one.function));
  };
  bool found = false;
  visit_steps(inquiry.operands[operand].lineage, [&](const trace::LineageNode& node) {
    const trace::Position made = runtime.recorder->site(node.site).user;
    found = made.file == at.file && made.line <= at.line && at.line <= made.end_line && around(made) == around(at);
    return !found;
  });
  return found;
}

std::vector<KeptList> lists_with(const Inquiry& inquiry, const void* object) {
  std::vector<KeptList> lists;
  for (const Holding& entry : inquiry.search.holdings_of(object)) {
    if (!is_entry(entry.link.kind)) continue;
    for (const Holding& outer : inquiry.search.holdings_of(entry.holder)) {
      if (outer.link.kind == LinkKind::attribute) lists.push_back({entry, outer});
    }
  }
  return lists;
}

// The attributes that keep a list or dict of lists or dicts with an object: `for group in self.groups: for p in
// group["params"]:`.
std::vector<Holding> keepers_of_nested(const Inquiry& inquiry, const void* object) {
  constexpr std::size_t kMostHolders = 16;
  std::vector<const void*> inside = {object};
  std::vector<Holding> keepers;
  for (std::size_t k = 0; k < inside.size(); ++k) {
    for (const Holding& one : inquiry.search.holdings_of(inside[k])) {
      if (one.link.kind == LinkKind::attribute && k != 0) keepers.push_back(one);
      const bool another = is_entry(one.link.kind) && std::ranges::find(inside, one.holder) == inside.end();
      if (another && inside.size() < kMostHolders) inside.push_back(one.holder);
    }
  }
  return keepers;
}

// What a loop takes out of a list or dict which a module keeps: `for layer, gain in zip(self.layers, self.gains):`. Of
// tensors that are no parameters, those that the line makes which stores the list: others have been put there later, by
// whoever computed them.
bool add_entry_of_module(const Inquiry& inquiry, std::size_t operand, const void* object) {
  const bool parameter = type_name(object) == "Parameter";
  for (const auto& [entry, list] : lists_with(inquiry, object)) {
    if (!is_torch_module(list.holder)) continue;
    const auto stored = attribute_store(inquiry, operand, list.holder, list.link.name);
    if (!parameter && !(stored && was_made_on(inquiry, operand, *stored))) continue;
    const std::string path = type_and(list.holder, written(list.link));
    inquiry.found.add(trace::EvidenceKind::held_by_module, operand, {}, path + written(entry.link));
    if (stored) inquiry.found.add(trace::EvidenceKind::attribute_set_at, operand, *stored, path);
    find_holder_move(inquiry, operand, list.holder);
    return true;
  }
  return false;
}

// The only one in the function whose line made the operand, or copied it.
std::optional<trace::Position> stored_where_made(const Inquiry& inquiry, std::size_t operand,
                                                 const std::vector<Candidate>& candidates) {
  const trace::LineageNode made = runtime.recorder->lineage(inquiry.operands[operand].lineage);
  const trace::Position site = runtime.recorder->site(made.site).user;
  std::optional<trace::Position> found;
  for (const Candidate& one : candidates) {
    if (!same_function(one.at, site) || one.at.line < site.line) continue;
    if (found && !same_line(*found, one.at)) return std::nullopt;
    found = one.at;
  }
  return found;
}

// The only attribute among them of an object that is no module.
std::optional<Holding> only_of_object(const std::vector<Holding>& attributes) {
  std::optional<Holding> found;
  for (const Holding& one : attributes) {
    if (is_torch_module(one.holder)) continue;
    if (found && (found->holder != one.holder || !same_name(found->link.name, one.link.name))) return std::nullopt;
    found = one;
  }
  return found;
}

// The same of a list that an object keeps which is no module: `for kept, p in zip(self.kept, params):`.
void add_entry_of_object(const Inquiry& inquiry, std::size_t operand, const void* object) {
  std::vector<Holding> attributes;
  for (const KeptList& kept : lists_with(inquiry, object)) attributes.push_back(kept.attribute);
  const auto list = only_of_object(attributes.empty() ? keepers_of_nested(inquiry, object) : attributes);
  if (!list) return;
  const auto candidates = attribute_stores(inquiry, list->holder, list->link.name);
  auto stored = choose(inquiry, operand, candidates);
  if (!stored) stored = taken_as_loaded(inquiry, operand, candidates, list->link.name);
  if (!stored) stored = stored_where_made(inquiry, operand, candidates);
  if (!stored) stored = choose_giver(inquiry, operand, candidates);
  if (!stored) return add_perhaps_stored(inquiry, operand, candidates, type_and(list->holder, written(list->link)));
  inquiry.found.add(trace::EvidenceKind::list_stored_at, operand, *stored, type_and(list->holder, written(list->link)));
}

// A variable that stands for an attribute, `bias = self.bias`, or for a part of one, `window = self.table[:n]`. Of
// several holders none is sure to be meant.
void find_holder_of_alias(const Inquiry& inquiry, std::size_t operand, const void* object) {
  const Holding* found = nullptr;
  std::vector<Holding> holdings = inquiry.search.holdings_of(object);
  if (inquiry.search.owner(object) == nullptr && add_entry_of_module(inquiry, operand, object)) return;
  add_entry_of_object(inquiry, operand, object);
  if (holdings.empty()) holdings = inquiry.search.holdings_of_base(operand);
  for (const Holding& holding : holdings) {
    if (add_entry_of_global(inquiry, operand, holding)) return;
    if (holding.link.kind != LinkKind::attribute || found != nullptr) return;
    found = &holding;
  }
  if (found == nullptr || !is_torch_module(found->holder)) return;
  const std::string path = type_and(found->holder, written(found->link));
  inquiry.found.add(trace::EvidenceKind::held_by_module, operand, {}, path);
  find_holder_move(inquiry, operand, found->holder);
  if (const auto position = attribute_store(inquiry, operand, found->holder, found->link.name)) {
    inquiry.found.add(trace::EvidenceKind::attribute_set_at, operand, *position, path);
  }
}

void find_holder(const Inquiry& inquiry, std::size_t operand) {
  const ObjectSearch& search = inquiry.search;
  const Sighting& sighting = search.sighting(operand);
  if (sighting.place == kNoPlace || sighting.gradient) return;
  if (const void* wrapped = inquiry.wrapped_object(operand)) return find_holder_of_alias(inquiry, operand, wrapped);
  const Place& itself = search.place(sighting.place);
  if (!search.is_root(sighting.place) && search.is_root(itself.parent)) {
    const Holding holding{search.place(itself.parent).object, itself.link, itself.object};
    if (add_entry_of_global(inquiry, operand, holding)) return;
  }
  if (search.is_root(sighting.place)) return find_holder_of_alias(inquiry, operand, itself.object);
  std::string path;
  for (std::uint32_t at = sighting.place; !search.is_root(at); at = search.place(at).parent) {
    const Place& place = search.place(at);
    path = written(place.link) + path;
    if (is_entry(place.link.kind)) continue;
    if (place.link.kind != LinkKind::attribute) return;
    const void* holder = search.place(place.parent).object;
    const auto kind =
        is_torch_module(holder) ? trace::EvidenceKind::held_by_module : trace::EvidenceKind::held_by_object;
    inquiry.found.add(kind, operand, {}, type_and(holder, path));
    if (kind == trace::EvidenceKind::held_by_module) {
      find_holder_move(inquiry, operand, holder);
      return find_own_apply(inquiry, operand, holder);
    }
    const bool partial = type_name(holder) == "functools.partial";
    const auto made = partial ? partial_made_at(inquiry, itself.link) : std::nullopt;
    if (made) inquiry.found.add(trace::EvidenceKind::attribute_set_at, operand, *made, type_and(holder, path));
    return;
  }
}

}  // namespace devsan::hooks
