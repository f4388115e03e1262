#include "hooks/inprocess/evidence/own_parts.h"

#include <algorithm>

#include "hooks/inprocess/interpreter/byte_code.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"

namespace devsan::hooks {

bool is_own_mover(const void* code) {
  const void* name = field<const void*>(code, code_members.name);
  return code_arguments(code) >= 1 &&
         std::ranges::any_of(kOwnMovers, [name](std::string_view one) { return is_name(name, one); });
}

std::vector<Part> parts_around(const Inquiry& inquiry, std::size_t operand) {
  const ObjectSearch& search = inquiry.search;
  std::vector<Part> parts;
  std::uint32_t at = search.sighting(operand).place;
  while (at != kNoPlace && !search.is_root(at) && search.place(at).link.kind != LinkKind::attribute) {
    at = search.place(at).parent;
  }
  if (at != kNoPlace && !search.is_root(at)) {
    const void* holder = search.place(search.place(at).parent).object;
    if (!is_torch_module(holder)) parts.push_back({holder, search.place(at).link.name});
  }
  const auto add_attributes = [&](const void* object) {
    for (const Holding& holding : search.holdings_of(object)) {
      const bool attribute = holding.link.kind == LinkKind::attribute && !is_torch_module(holding.holder);
      if (attribute) parts.push_back({holding.holder, holding.link.name});
    }
  };
  add_attributes(inquiry.object_of(operand));
  for (const Holding* owner : inquiry.owners_of(operand)) {
    add_attributes(owner->holder);
    const Holding* parent = search.parent_module(owner->holder);
    if (parent != nullptr) parts.push_back({parent->holder, parent->link.name});
  }
  return parts;
}

}  // namespace devsan::hooks
