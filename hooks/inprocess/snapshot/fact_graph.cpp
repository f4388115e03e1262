#include "hooks/inprocess/snapshot/fact_graph.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "hooks/inprocess/bridge/copies.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/snapshot/fact_bounds.h"
#include "hooks/inprocess/snapshot/object_members.h"
#include "trace/secret_names.h"

namespace devsan::hooks {

namespace {

using trace::FactLinkKind;
using trace::ObjectKind;

static_assert(kMaxFactObjects < kNoFact);

std::string_view written_name(const FactLink& link, char* buffer, std::size_t size) noexcept {
  if (link.text != nullptr) return link.text;
  return link.name != nullptr ? text_of(link.name, buffer, size) : std::string_view();
}

bool is_entry(FactLinkKind kind) noexcept {
  return kind == FactLinkKind::entry || kind == FactLinkKind::keyed_entry || kind == FactLinkKind::numbered_entry ||
         kind == FactLinkKind::entry_of_key || kind == FactLinkKind::member;
}

// A module's parts are what a model is made of: their number is bounded by that of all objects alone.
bool is_attribute(FactLinkKind kind) noexcept {
  return kind == FactLinkKind::attribute;
}

trace::LinkFact fact_of_link(std::uint16_t from, std::uint16_t to, const FactLink& link) {
  return {from, to, name_of(link), link.index, link.kind, {}};
}

}  // namespace

trace::StringId name_of(const FactLink& link) {
  char buffer[256];
  return runtime.recorder->intern_string(written_name(link, buffer, sizeof buffer));
}

FactGraph::FactGraph(std::span<const trace::OperandRecord> records, std::span<const OperandIdentity> identities)
    : records_(records), identities_(identities) {
  objects_.reserve(512);
  known_.reserve(512);
  links_.reserve(1024);
}

void FactGraph::match_operand(const Known& known, trace::ObjectFact& fact) const {
  const c10::StorageImpl* storage = known.tensor != nullptr ? storage_of(known.tensor) : nullptr;
  const void* generator = fact.kind == ObjectKind::generator ? generator_of(known.object) : nullptr;
  for (std::size_t k = 0; k < identities_.size(); ++k) {
    const OperandIdentity& operand = identities_[k];
    const bool itself = (known.tensor != nullptr && operand.tensor == known.tensor) ||
                        (known.object != nullptr && operand.object == known.object) ||
                        (generator != nullptr && operand.generator == generator);
    const bool shares = storage != nullptr && operand.tensor != nullptr && storage_of(operand.tensor) == storage;
    if (!itself && (!shares || fact.operand != trace::kNoOperand)) continue;
    fact.operand = static_cast<std::int8_t>(k);
    fact.flags = static_cast<std::uint8_t>((fact.flags & ~unsigned{trace::kSharesMemory}) |
                                           (itself ? 0u : unsigned{trace::kSharesMemory}));
    if (itself) {
      if (records_[k].lineage != trace::LineageId::none) fact.lineage = records_[k].lineage;
      return;
    }
  }
}

std::uint16_t FactGraph::add_new(const trace::ObjectFact& described, const Known& known) {
  trace::ObjectFact fact = described;
  match_operand(known, fact);
  if (const c10::StorageImpl* storage = known.tensor != nullptr ? storage_of(known.tensor) : nullptr) {
    const auto next = static_cast<std::uint32_t>(storages_.size() + 1);
    const auto [number, is_new] = storages_.try_emplace(storage, next);
    if (is_new) storage_order_.push_back(storage);
    fact.storage = number->second;
  }
  const auto index = static_cast<std::uint16_t>(objects_.size());
  objects_.push_back(fact);
  known_.push_back(known);
  indexes_.emplace(known.tensor != nullptr ? static_cast<const void*>(known.tensor) : known.object, index);
  return index;
}

std::uint16_t FactGraph::add_tensor(const c10::TensorImpl* tensor, void* object) {
  const auto known = indexes_.find(tensor);
  if (known != indexes_.end()) {
    if (known_[known->second].object == nullptr) known_[known->second].object = object;
    return known->second;
  }
  if (objects_.size() >= kMaxFactObjects) {
    cut_ = true;
    return kNoFact;
  }
  return add_new(describer_.describe_tensor(tensor, object), {object, tensor, depth_});
}

std::uint16_t FactGraph::find(const void* object) {
  const c10::TensorImpl* tensor = describer_.tensor_at(object);
  const auto known = indexes_.find(tensor != nullptr ? static_cast<const void*>(tensor) : object);
  return known != indexes_.end() ? known->second : kNoFact;
}

std::uint16_t FactGraph::add(void* object, const FactLink& name) {
  if (const c10::TensorImpl* tensor = describer_.tensor_at(object)) return add_tensor(tensor, object);
  const auto known = indexes_.find(object);
  if (known != indexes_.end()) return known->second;
  if (objects_.size() >= kMaxFactObjects) {
    cut_ = true;
    return kNoFact;
  }
  char buffer[256];
  const bool with_text = !trace::names_secret(written_name(name, buffer, sizeof buffer));
  return add_new(describer_.describe(object, with_text), {object, nullptr, depth_});
}

void FactGraph::connect(std::uint16_t from, std::uint16_t to, const FactLink& link) {
  if (from == kNoFact || to == kNoFact || links_.size() >= kMaxFactLinks) return;
  const trace::LinkFact fact = fact_of_link(from, to, link);
  const bool there = std::ranges::any_of(links_, [&](const trace::LinkFact& one) {
    return one.from == from && one.to == to && one.kind == fact.kind && one.name == fact.name &&
           one.index == fact.index;
  });
  if (!there) links_.push_back(fact);
}

void FactGraph::cut_current() {
  cut_ = true;
  objects_[current_].flags |= trace::kObjectCut;
}

bool FactGraph::may_hold_more(FactLinkKind kind) {
  const bool full = links_.size() >= kMaxFactLinks - kRoomForPaths ||
                    (is_entry(kind) && ++entries_ > kMaxFactEntries) ||
                    (is_attribute(kind) && ++attributes_ > kMaxFactAttributes);
  if (full) cut_current();
  return !full;
}

bool FactGraph::link(const FactLink& link, void* object, const c10::TensorImpl* tensor) {
  if (!may_hold_more(link.kind)) return false;
  const std::uint16_t held = tensor != nullptr ? add_tensor(tensor, object) : add(object, link);
  if (held == kNoFact) {
    cut_current();
    return true;  // others that it holds may be known
  }
  links_.push_back(fact_of_link(current_, held, link));
  return true;
}

void FactGraph::follow() {
  for (; followed_ < objects_.size(); ++followed_) {
    const Known known = known_[followed_];
    current_ = static_cast<std::uint16_t>(followed_);
    if (known.depth >= kMaxFactDepth) continue;
    entries_ = 0;
    attributes_ = 0;
    depth_ = static_cast<std::uint8_t>(known.depth + 1);
    visit_fact_links(known.object, objects_[followed_].kind, known.tensor, describer_, *this);
  }
  depth_ = 0;
}

std::vector<trace::CopyFact> FactGraph::copies() const {
  constexpr std::pair<Copied, trace::CopyKind> kKinds[] = {{Copied::away, trace::CopyKind::moved_away},
                                                           {Copied::nowhere, trace::CopyKind::left_in_place},
                                                           {Copied::pinned, trace::CopyKind::pinned}};
  std::vector<trace::CopyFact> all;
  for (std::size_t k = 0; k < storage_order_.size() && all.size() < kMaxFactCopies; ++k) {
    for (const auto& [how, kind] : kKinds) {
      const std::optional<Copy> copy = find_copy(storage_order_[k], how);
      if (!copy) continue;
      all.push_back(
          {static_cast<std::uint32_t>(k + 1), copy->site, trace::LineageId{copy->calls}, kind, copy->device, 0});
    }
  }
  return all;
}

}  // namespace devsan::hooks
