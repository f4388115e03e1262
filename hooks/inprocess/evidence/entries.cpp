// Where the entries of the container that holds an operand are put there: `frames.append(x)`, `self.cache[key] = x`.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/neighbours.h"
#include "hooks/inprocess/interpreter/byte_code.h"
#include "hooks/inprocess/interpreter/code_table.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/source/file_lines.h"
#include "hooks/inprocess/source/python_puts.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"

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

// A container by its name: an attribute, or a variable; or else the entry `key` of that.
struct Container {
  Link link;
  const void* key = nullptr;
};

// Whether `written` is the container by its name: of an attribute whatever comes before it. A key that is no constant
// may be any.
bool names(std::string_view written, const Container& container) {
  if (container.key != nullptr) {
    const std::size_t open = written.ends_with(']') ? written.rfind('[') : written.npos;
    if (open == written.npos) return false;
    const std::string_view key = text_of_key(written.substr(open + 1, written.size() - open - 2));
    return (key.empty() || key == text_of(container.key)) && names(written.substr(0, open), {container.link, nullptr});
  }
  const std::string name = text_of(container.link.name);
  if (container.link.kind != LinkKind::attribute) return written == name;
  return written.ends_with(name) && written.substr(0, written.size() - name.size()).ends_with('.');
}

// What a statement puts into the container, where that may be the entry; none where its text does not tell.
std::optional<ContainerPut> put_by(const std::string& statement, const Container& container, const Link& entry) {
  const bool named = entry.kind == LinkKind::key && entry.name != nullptr;
  const std::string key = named ? text_of(entry.name) : std::string();
  for (ContainerPut& put : puts_in(statement)) {
    const std::string_view other = text_of_key(put.key);
    if (names(put.container, container) && (key.empty() || other.empty() || other == key)) return std::move(put);
  }
  return std::nullopt;
}

void add_puts(Puts& puts, const void* code, const Container& container, const Link& entry) {
  const bool attribute = container.link.kind == LinkKind::attribute;
  if (attribute && !mentions(code, container.link.name)) return;
  const Operation load = attribute ? Operation::load_attribute : Operation::load_variable;
  const ByteCode byte_code(code);
  const auto& all = byte_code.instructions();
  FileLines files;
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (all[k].operation != load || !same_name(all[k].operand, container.link.name)) continue;
    const trace::Position at = position_of(code, all[k].offset);
    const bool itself = container.key == nullptr;
    const bool method = itself && loads(all, k + 1, Operation::load_attribute) &&
                        std::ranges::any_of(kPuts, [&](auto name) { return is_name(all[k + 1].operand, name); });
    const bool item = itself && loads(all, k + 2, Operation::store_item) && may_be(all[k + 1], entry);
    if (method) {
      puts.add(at, gives_variable(all, k + 2));
    } else if (item) {
      const std::size_t value = attribute ? 2 : 1;  // in front of what leads to the container
      puts.add(at, k >= value && loads(all, k - value, Operation::load_variable));
    } else {
      // `self.kept += [x]` and its kin have no such shape.
      const auto put = put_by(statement_at(files.of(at.file), at.line), container, entry);
      if (put) puts.add(at, is_identifier(put->value));
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

// An entry, and the place of the container that it is in.
struct Entry {
  Link link;
  std::uint32_t container;
};

// The lines that may have put the entry where it is.
Puts puts_of(const Inquiry& inquiry, const Entry& entry) {
  std::uint32_t at = entry.container;
  const Link& own = inquiry.search.place(at).link;
  const bool keyed = own.kind == LinkKind::key && !inquiry.search.is_root(at);
  if (keyed) at = inquiry.search.place(at).parent;
  const Place& named = inquiry.search.place(at);
  const bool variable = inquiry.search.is_root(at) && named.frame != nullptr;
  Puts puts;
  if (named.link.name == nullptr || (keyed && own.name == nullptr)) return puts;
  if (named.link.kind != LinkKind::attribute && !variable) return puts;
  const Container container{named.link, keyed ? own.name : nullptr};
  for (const void* code : functions_at(inquiry, named)) add_puts(puts, code, container, entry.link);
  return puts;
}

// The dictionary that has the object at a place as an entry, or a tuple or list with it, whatever else it goes by.
std::optional<Entry> entry_of_dict(const ObjectSearch& search, std::uint32_t at) {
  constexpr std::size_t kMaxContainers = 8;
  const Place& itself = search.place(at);
  if (!search.is_root(at) && itself.link.kind == LinkKind::key) return Entry{itself.link, itself.parent};
  std::vector<const void*> held{itself.object};
  for (std::size_t k = 0; k < held.size() && held.size() < kMaxContainers; ++k) {
    for (const Holding& holding : search.holdings_of(held[k])) {
      const std::uint32_t container = search.find_place(holding.holder);
      if (holding.link.kind == LinkKind::key && container != kNoPlace) return Entry{holding.link, container};
      if (holding.link.kind == LinkKind::index) held.push_back(holding.holder);
    }
  }
  return std::nullopt;
}

bool is_key(const void* constant, const void* key) {
  return constant != nullptr && is_text(constant) && same_name(constant, key);
}

// How a function's constants mention a key: in a tuple, as displays and calls with keywords have their keys.
bool in_tuple(const void* code, const void* key) {
  const void* constants = code_constants(code);
  for (std::ptrdiff_t k = 0; tuple_entry(constants, k) != nullptr; ++k) {
    const void* constant = tuple_entry(constants, k);
    for (std::ptrdiff_t n = 0; tuple_entry(constant, n) != nullptr; ++n) {
      if (is_key(tuple_entry(constant, n), key)) return true;
    }
  }
  return false;
}

// The only line of the program that stores an entry by this name in any dictionary; none where one may be made in
// another way: in a display, by a keyword, or by a key that is no constant.
std::optional<trace::Position> only_store_of_key(const Inquiry& inquiry, const void* key) {
  std::optional<trace::Position> found;
  for (const void* code : inquiry.own_code.code()) {
    if (in_tuple(code, key)) return std::nullopt;
    const ByteCode byte_code(code);
    const auto& all = byte_code.instructions();
    for (std::size_t k = 0; k + 1 < all.size(); ++k) {
      const bool loaded = all[k].operation == Operation::load_constant && is_key(all[k].operand, key);
      const bool annotates =
          k > 0 && all[k - 1].operation == Operation::load_variable && is_name(all[k - 1].operand, "__annotations__");
      if (annotates) continue;  // `numbers: Tensor` in the body of a class
      // Read, or given to a call.
      if (!loaded || all[k + 1].operation == Operation::other) continue;
      if (found || all[k + 1].operation != Operation::store_item) return std::nullopt;
      found = position_of(code, all[k + 1].offset);
    }
  }
  return found;
}

void find_neighbours(const Inquiry& inquiry, std::size_t operand, const Place& dict) {
  Neighbours neighbours(inquiry, operand);
  visit_links(dict.object, neighbours);
  neighbours.report();
}

// A line puts a variable there that its function has computed, as another operand shows, which was made where the
// variable got its value. An operand that was made elsewhere has not come by that line.
bool puts_computed(const Inquiry& inquiry, std::size_t operand, const trace::Position& at) {
  SourceFiles files;
  const SourceLines lines(files.whole(at.file));
  const int definition = enclosing_line(lines, at.line, "def ");
  for (const ContainerPut& put : puts_in(statement_at(lines, at.line))) {
    const std::vector<int> given = assignments_of(lines, put.value, definition + 1, at.line);
    if (given.empty()) continue;
    const auto made_there = [&](const trace::OperandRecord& one) {
      const trace::Position made = runtime.recorder->site(runtime.recorder->lineage(one.lineage).site).user;
      return made.file == at.file && goes_on_to(lines, given.back(), made.line);
    };
    if (!made_there(inquiry.operands[operand]) && std::ranges::any_of(inquiry.operands, made_there)) return true;
  }
  return false;
}

}  // namespace

std::optional<trace::Position> dict_store(const Inquiry& inquiry, std::size_t operand) {
  const Ancestor& ancestor = inquiry.search.ancestor(operand);
  for (const std::uint32_t at :
       {inquiry.search.sighting(operand).place, ancestor.certain ? ancestor.place : kNoPlace}) {
    const auto entry = at != kNoPlace ? entry_of_dict(inquiry.search, at) : std::nullopt;
    if (entry) return choose(inquiry, operand, puts_of(inquiry, *entry).all);
  }
  return std::nullopt;
}

std::optional<trace::Position> container_put(const Inquiry& inquiry, std::size_t operand, const void* object) {
  for (const Holding& holding : inquiry.search.holdings_of(object)) {
    const std::uint32_t container = inquiry.search.find_place(holding.holder);
    if (!is_entry(holding.link.kind) || container == kNoPlace) continue;
    if (inquiry.search.place(container).link.kind != LinkKind::attribute) continue;
    if (const auto at = choose(inquiry, operand, puts_of(inquiry, {holding.link, container}).all)) return at;
  }
  return std::nullopt;
}

// A variable that a loop took out of a dictionary: `for p, (left, right) in self.factors.items():`.
void find_put_of_variable(const Inquiry& inquiry, std::size_t operand, std::uint32_t place) {
  const auto entry = entry_of_dict(inquiry.search, place);
  if (!entry) return;
  const std::vector<Candidate> candidates = puts_of(inquiry, *entry).all;
  auto at = choose(inquiry, operand, candidates);
  if (!at) at = choose_giver(inquiry, operand, candidates);
  if (at) inquiry.found.add(trace::EvidenceKind::entry_put_at, operand, *at, inquiry.search.path_to(entry->container));
}

void find_entry_puts(const Inquiry& inquiry, std::size_t operand) {
  const Sighting& sighting = inquiry.search.sighting(operand);
  if (sighting.place == kNoPlace || sighting.gradient) return;
  if (inquiry.search.is_root(sighting.place)) return find_put_of_variable(inquiry, operand, sighting.place);
  const Place& entry = inquiry.search.place(sighting.place);
  if (!is_entry(entry.link.kind)) return;
  Puts puts = puts_of(inquiry, {entry.link, entry.parent});
  auto at = choose(inquiry, operand, puts.all);
  if (!at) at = choose(inquiry, operand, puts.plain);
  if (!at) {
    std::erase_if(puts.plain, [&](const Candidate& one) { return puts_computed(inquiry, operand, one.at); });
    at = choose(inquiry, operand, puts.plain);
  }
  const bool named = entry.link.kind == LinkKind::key && entry.link.name != nullptr;
  if (!at && puts.all.empty() && named) at = only_store_of_key(inquiry, entry.link.name);
  if (is_dict(inquiry.search.place(entry.parent).object)) {
    find_neighbours(inquiry, operand, inquiry.search.place(entry.parent));
  }
  if (at) {
    inquiry.found.add(trace::EvidenceKind::entry_put_at, operand, *at, inquiry.search.path_to(entry.parent));
  }
}

}  // namespace devsan::hooks
