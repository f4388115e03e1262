// The tensor that an operand was computed from and that is still kept somewhere.
#include <string>

#include "hooks/evidence/evidence.h"

namespace devsan::hooks {

namespace {

// Where the attribute that is the end of the way to it is stored; none where that is no attribute, or is not known.
std::optional<trace::Position> stored_at(const Inquiry& inquiry, std::size_t operand, const Ancestor& ancestor) {
  const Place& place = inquiry.search.place(ancestor.place);
  if (place.link.kind != LinkKind::attribute) return std::nullopt;
  return attribute_store(inquiry, operand, inquiry.search.place(place.parent).object, place.link.name);
}

}  // namespace

void find_ancestor(const Inquiry& inquiry, std::size_t operand) {
  const Sighting& sighting = inquiry.search.sighting(operand);
  const bool itself = sighting.place != kNoPlace && !sighting.base && !inquiry.search.is_root(sighting.place);
  if (itself) return;
  const Ancestor& ancestor = inquiry.search.ancestor(operand);
  if (ancestor.place != kNoPlace && ancestor.certain) {
    trace::Position at = stored_at(inquiry, operand, ancestor).value_or(trace::Position{});
    if (inquiry.search.is_root(ancestor.place)) {
      const auto binding = binding_at(inquiry, operand, inquiry.search.place(ancestor.place));
      if (binding) at = binding->at;
    }
    inquiry.found.add(trace::EvidenceKind::computed_from, operand, at, inquiry.search.path_to(ancestor.place));
  }
  const Ancestor& kept = inquiry.search.kept_ancestor(operand);
  if (kept.place == kNoPlace || !kept.certain) return;
  if (const auto stored = stored_at(inquiry, operand, kept)) {
    inquiry.found.add(trace::EvidenceKind::kept_source_at, operand, *stored, inquiry.search.path_to(kept.place));
  }
}

}  // namespace devsan::hooks
