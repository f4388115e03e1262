// Where the entries of the container that holds an operand are put there: `frames.append(x)`, `self.cache[key] = x`.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "hooks/byte_code.h"
#include "hooks/code_table.h"
#include "hooks/evidence.h"
#include "hooks/python_frames.h"
#include "hooks/sites.h"

namespace devsan::hooks {

namespace {

constexpr std::array<std::string_view, 7> kPuts = {"append", "appendleft", "add",       "insert",
                                                   "extend", "update",     "setdefault"};

// All the lines, and those that put a variable there as it is: on these no operator can have made the value.
struct Puts {
  std::vector<Candidate> all;
  std::vector<Candidate> plain;

  void add(const trace::Position& at, bool is_plain) {
    all.push_back({at, true});
    if (is_plain) plain.push_back({at, true});
  }
};

bool loads(const std::vector<Instruction>& all, std::size_t at, Operation operation) {
  return at < all.size() && all[at].operation == operation;
}

// Whether a call's arguments, which begin at `at`, are loaded as they are, and the last is a variable.
bool gives_variable(const std::vector<Instruction>& all, std::size_t at) {
  std::size_t end = at;
  while (loads(all, end, Operation::load_variable) || loads(all, end, Operation::load_constant)) ++end;
  return end > at && loads(all, end - 1, Operation::load_variable) && loads(all, end, Operation::other);
}

// Whether a subscript may be the one of an entry: another constant is another entry.
bool may_be(const Instruction& subscript, const Link& entry) {
  return subscript.operation != Operation::load_constant || subscript.operand == nullptr || entry.name == nullptr ||
         !is_text(subscript.operand) || same_name(subscript.operand, entry.name);
}

// `container` is an attribute, or a variable.
void add_puts(Puts& puts, const void* code, const Link& container, const Link& entry) {
  const bool attribute = container.kind == LinkKind::attribute;
  if (attribute && !mentions(code, container.name)) return;
  const Operation load = attribute ? Operation::load_attribute : Operation::load_variable;
  const ByteCode byte_code(code);
  const auto& all = byte_code.instructions();
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (all[k].operation != load || !same_name(all[k].operand, container.name)) continue;
    const bool method = loads(all, k + 1, Operation::load_attribute) &&
                        std::ranges::any_of(kPuts, [&](auto name) { return is_name(all[k + 1].operand, name); });
    const bool item = loads(all, k + 2, Operation::store_item) && may_be(all[k + 1], entry);
    if (method) {
      puts.add(position_of(code, all[k].offset), gives_variable(all, k + 2));
    } else if (item) {
      const std::size_t value = attribute ? 2 : 1;  // in front of what leads to the container
      puts.add(position_of(code, all[k].offset), k >= value && loads(all, k - value, Operation::load_variable));
    }
  }
}

// The functions that may put something into the container.
std::vector<const void*> functions_at(const Inquiry& inquiry, const Place& container) {
  if (container.link.kind == LinkKind::local) return {frame_code(container.frame)};
  std::vector<const void*> code = inquiry.own_code.code();
  if (container.link.kind != LinkKind::attribute) return code;
  for (const void* function : functions_of_type(type_of(inquiry.search.place(container.parent).object))) {
    const void* one = code_of_function(function);
    const bool known = std::ranges::find(code, one) != code.end();
    if (!known && (code_table.classify(one) & kTorchCode) == 0) code.push_back(one);
  }
  return code;
}

}  // namespace

void find_entry_puts(const Inquiry& inquiry, std::size_t operand) {
  const Sighting& sighting = inquiry.search.sighting(operand);
  if (sighting.place == kNoPlace || sighting.gradient || inquiry.search.is_root(sighting.place)) return;
  const Place& entry = inquiry.search.place(sighting.place);
  if (!is_entry(entry.link.kind)) return;
  const Place& container = inquiry.search.place(entry.parent);
  const LinkKind kind = container.link.kind;
  const bool variable = inquiry.search.is_root(entry.parent) && container.frame != nullptr;
  if (container.link.name == nullptr || (kind != LinkKind::attribute && !variable)) return;
  Puts puts;
  for (const void* code : functions_at(inquiry, container)) add_puts(puts, code, container.link, entry.link);
  auto at = choose(inquiry, operand, puts.all);
  if (!at) at = choose(inquiry, operand, puts.plain);
  if (at) {
    inquiry.found.add(trace::EvidenceKind::entry_put_at, operand, *at, inquiry.search.path_to(entry.parent));
  }
}

}  // namespace devsan::hooks
