// The tensor that an operand was computed from and that is still kept somewhere.
#include <string>

#include "hooks/evidence/evidence.h"

namespace devsan::hooks {

namespace {

// Where the attribute that keeps it is stored; none where that is not known.
std::optional<trace::Position> stored_at(const Inquiry& inquiry, std::size_t operand, const Ancestor& kept) {
  const Place& place = inquiry.search.place(kept.place);
  return attribute_store(inquiry, operand, inquiry.search.place(place.parent).object, place.link.name);
}

}  // namespace

void find_ancestor(const Inquiry& inquiry, std::size_t operand) {
  const Sighting& sighting = inquiry.search.sighting(operand);
  const bool itself = sighting.place != kNoPlace && !sighting.base && !inquiry.search.is_root(sighting.place);
  if (itself) return;
  const Ancestor& ancestor = inquiry.search.ancestor(operand);
  const Ancestor& kept = inquiry.search.kept_ancestor(operand);
  const auto stored = kept.place != kNoPlace && kept.certain ? stored_at(inquiry, operand, kept) : std::nullopt;
  if (ancestor.place != kNoPlace && ancestor.certain) {
    trace::Position at{};
    if (ancestor.place == kept.place) at = stored.value_or(at);
    if (inquiry.search.is_root(ancestor.place)) {
      const auto binding = binding_at(inquiry, operand, inquiry.search.place(ancestor.place));
      if (binding) at = binding->at;
    }
    inquiry.found.add(trace::EvidenceKind::computed_from, operand, at, inquiry.search.path_to(ancestor.place));
  }
  if (stored)
    inquiry.found.add(trace::EvidenceKind::kept_source_at, operand, *stored, inquiry.search.path_to(kept.place));
}

}  // namespace devsan::hooks
