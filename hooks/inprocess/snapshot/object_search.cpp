#include "hooks/inprocess/snapshot/object_search.h"

#include <optional>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/code_table.h"
#include "hooks/inprocess/interpreter/python_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/large_page.h"
#include "hooks/inprocess/provenance/lineage_nodes.h"
#include "hooks/inprocess/snapshot/object_members.h"

namespace devsan::hooks {

namespace {

// A number as it is written; a key of any other kind is not shown.
std::string number_key(const void* key) {
  const std::optional<long> number = integer_in(key);
  return number ? std::to_string(*number) : "...";
}

}  // namespace

ObjectSearch::ObjectSearch(std::span<const trace::OperandRecord> records, std::span<const OperandIdentity> identities,
                           trace::SiteId site)
    : records_(records), identities_(identities), sightings_(records.size()), parents_(records.size()) {
  places_.reserve(1024);
  layout_.learn(identities);
  const trace::Position here = runtime.recorder->site(site).user;
  for (std::size_t k = 0; k < records.size(); ++k) note_parents(k, here);
}

void ObjectSearch::run(const void* innermost) {
  // `self.table` in the function that fails, rather than the variable of a caller's that it was made in.
  add_frames(innermost, false, 1);
  follow(1);
  add_frames(innermost, false);
  add_globals(innermost);
  follow();
  add_frames(innermost, true);
  follow();
}

void ObjectSearch::run_threads(const void* thread) {
  run(current_frame(thread));
  run_other_threads(thread);
}

void ObjectSearch::run_other_threads(const void* thread) {
  for_other_threads(thread, [this](const void* frame) {
    if (!full()) run(frame);
    return !full();
  });
}

void ObjectSearch::add_frames(const void* innermost, bool torch_frames, int limit) {
  const void* frame = innermost;
  int added = 0;
  for (int depth = 0; frame != nullptr && depth < kMaxFrames; ++depth, frame = frame_previous(frame)) {
    const std::uint32_t marks = code_table.marks(frame_code(frame));
    if ((marks & kNoCode) != 0 || ((marks & kTorchCode) != 0) != torch_frames) continue;
    add_frame(frame, false);
    if (++added == limit) return;
  }
}

// The globals of the innermost module that is the program's own.
void ObjectSearch::add_globals(const void* innermost) {
  for (const void* frame = innermost; frame != nullptr; frame = frame_previous(frame)) {
    const std::uint32_t marks = code_table.marks(frame_code(frame));
    if ((marks & (kNoCode | kTorchCode | kLibraryCode)) != 0) continue;
    return add_frame(frame, true);
  }
}

void ObjectSearch::add_frame(const void* frame, bool globals) {
  current_ = kNoPlace;
  frame_ = frame;
  if (!full()) visit_frame(frame, globals, *this);
}

// Everything that the roots so far lead to.
void ObjectSearch::follow(std::uint32_t depth) {
  for (; followed_ < places_.size() && !full(); ++followed_) {
    if (places_[followed_].depth >= depth) {
      if (depth != kMaxDepth) return;
      continue;
    }
    current_ = followed_;
    visit_links(places_[followed_].object, *this);
  }
}

bool ObjectSearch::link(const Link& link, void* object) {
  if (current_ != kNoPlace) note_holding(link, object);
  if (!seen_.insert(object).second) return !full();
  const auto self = static_cast<std::uint32_t>(places_.size());
  if (current_ == kNoPlace) {
    places_.push_back({object, link, self, 0, frame_});
  } else {
    places_.push_back({object, link, current_, places_[current_].depth + 1, nullptr});
  }
  if (observer_ != nullptr && !layout_.known()) layout_.learn_from(object);
  const c10::TensorImpl* tensor = tensor_at(object);
  if (observer_ != nullptr && tensor != nullptr) observer_->tensor(self, tensor);
  for (std::size_t k = 0; k < records_.size(); ++k) look_for_operand(k, self, object, tensor);
  return !full();
}

void ObjectSearch::look_for_operand(std::size_t operand, std::uint32_t place, void* object,
                                    const c10::TensorImpl* tensor) {
  Sighting& sighting = sightings_[operand];
  if (sighting.place != kNoPlace && !sighting.base) return;
  const OperandIdentity& known = identities_[operand];
  if ((records_[operand].flags & trace::kWrappedNumber) != 0) return;
  if (known.object == object || (known.generator != nullptr && generator_of(object) == known.generator)) {
    sighting = {place, false, false};
  } else if (tensor == nullptr || known.tensor == nullptr || tensor == known.tensor) {
    return;
  } else if (gradient_of(tensor) == known.tensor) {
    sighting = {place, true, false};
  } else if (sighting.place == kNoPlace && is_base(operand, tensor)) {
    sighting = {place, false, true};
  }
}

// A view has the storage of its base; a temporary has a history that leads to the values it was made from, as long as
// it was made in the statement that failed.
void ObjectSearch::note_parents(std::size_t operand, const trace::Position& here) {
  trace::LineageId id = records_[operand].lineage;
  for (trace::LineageId& parent : parents_[operand]) {
    const trace::LineageNode node = runtime.recorder->lineage(id);
    const trace::Position made = runtime.recorder->site(node.site).user;
    const bool in_statement = made.file == here.file && made.function == here.function && made.line >= here.line &&
                              made.line <= here.end_line;
    if (id == trace::LineageId::none || !in_statement) break;
    id = parent = node.parent;
  }
}

bool ObjectSearch::is_base(std::size_t operand, const c10::TensorImpl* tensor) const {
  if (records_[operand].device != device_slot_of(tensor)) return false;
  const c10::StorageImpl* storage = storage_of(tensor);
  if (storage == nullptr) return false;
  if (storage == storage_of(identities_[operand].tensor)) return true;
  const trace::LineageId tag = origin_table().find(storage);
  if (tag == trace::LineageId::none) return false;
  for (const trace::LineageId parent : parents_[operand]) {
    if (parent == tag) return true;
  }
  return false;
}

void ObjectSearch::note_holding(const Link& link, void* object) {
  const Holding holding{places_[current_].object, link, object};
  if (link.kind == LinkKind::child) {
    children_.try_emplace(object, holding);
  } else if (link.kind == LinkKind::parameter || link.kind == LinkKind::buffer) {
    owned_.try_emplace(object, holding);
  } else if (holdings_.size() < kMaxHoldings &&
             (is_operand(object) || (leads_on(object) && tensor_at(object) == nullptr))) {
    holdings_.push_back(holding);
  }
}

bool ObjectSearch::is_operand(const void* object) const {
  for (const OperandIdentity& known : identities_) {
    if (known.object == object) return true;
  }
  return false;
}

const Holding* ObjectSearch::owner(const void* tensor) const {
  const auto found = owned_.find(tensor);
  return found == owned_.end() ? nullptr : &found->second;
}

std::uint32_t ObjectSearch::find_place(const void* object) const {
  for (std::size_t k = 0; k < places_.size(); ++k) {
    if (places_[k].object == object) return static_cast<std::uint32_t>(k);
  }
  return kNoPlace;
}

const Holding* ObjectSearch::parent_module(const void* module) const {
  const auto found = children_.find(module);
  return found == children_.end() ? nullptr : &found->second;
}

std::vector<const Holding*> ObjectSearch::outwards(const Holding* inner) const {
  std::vector<const Holding*> way;
  for (; inner != nullptr && way.size() < kMaxOutwards; inner = parent_module(inner->holder)) way.push_back(inner);
  return way;
}

std::vector<Holding> ObjectSearch::holdings_of(const void* object) const {
  std::vector<Holding> all;
  for (const Holding& holding : holdings_) {
    if (holding.object == object) all.push_back(holding);
  }
  return all;
}

std::string ObjectSearch::path_to(std::uint32_t index) const {
  const Place& at = places_[index];
  return (at.parent == index ? std::string() : path_to(at.parent)) + written(at.link);
}

bool WrittenLink::link(const Link& link, void* object) {
  // A field of a NamedTuple is an entry, too.
  const bool entry = link.kind == LinkKind::index && written({LinkKind::index, link.index}) == wanted_;
  if (!entry && written(link) != wanted_) return true;
  found_ = link;
  object_ = object;
  return false;
}

std::string link_name(const Link& link) {
  return link.text != nullptr ? std::string(link.text) : text_of(link.name);
}

std::string written(const Link& link) {
  const std::string name = link_name(link);
  switch (link.kind) {
    case LinkKind::index:
      return name.empty() ? "[" + std::to_string(link.index) + "]" : "." + name;
    case LinkKind::key:
      return link.name != nullptr ? "['" + name + "']" : "[" + number_key(link.key) + "]";
    case LinkKind::member:
      return "{...}";
    case LinkKind::gradient:
      return ".grad";
    case LinkKind::closure:
      return ".<nonlocal " + name + ">";
    case LinkKind::local:
    case LinkKind::global:
      return name;
    case LinkKind::attribute:
    case LinkKind::parameter:
    case LinkKind::buffer:
    case LinkKind::child:
      break;
  }
  const bool number = !name.empty() && name.find_first_not_of("0123456789") == name.npos;
  return number ? "[" + name + "]" : "." + name;  // children of a Sequential are numbered
}

}  // namespace devsan::hooks
