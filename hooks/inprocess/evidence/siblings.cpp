// What an operand came together with and was left out of: other entries of the containers that hold it, other tensors
// of its module, other arguments of the call, which the program moved to the device where it is missed.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "hooks/inprocess/bridge/copies.h"
#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/listing.h"
#include "hooks/inprocess/interpreter/byte_code.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/large_page.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"
#include "trace/function_names.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

constexpr std::size_t kMaxContainers = 64;
constexpr int kMaxEntries = 32;  // of one that is no more than a batch

bool is_same(const trace::Position& a, const trace::Position& b) noexcept {
  return a.file == b.file && a.line == b.line && a.column == b.column;
}

// Whether the program's line calls what Module._apply() calls for each tensor, rather than Module.to() and its kin.
bool hands_to_function(const trace::Site& site) {
  if (!runtime.recorder->string(site.innermost.function).ends_with(".<locals>.convert") &&
      !runtime.recorder->string(site.innermost.function).ends_with(".<locals>.<lambda>")) {
    return false;
  }
  SourceFiles files;
  const std::string_view line = files.line(site.user.file, site.user.line);
  constexpr std::array<std::string_view, 8> kMoves = {"to",    "cuda",   "cpu",      "half",
                                                      "float", "double", "bfloat16", "_apply"};
  return !line.empty() && !trace::calls_method(line, kMoves);
}

// The devices of the operands that an operand met.
class Wanted {
 public:
  Wanted(const Inquiry& inquiry, std::size_t operand)
      : inquiry_(inquiry), operand_(operand), own_(inquiry.operands[operand].device) {}

  // Where the program itself moved this tensor, or a copy of it, from the operand's device to one of these.
  trace::SiteId move_of(const c10::TensorImpl* tensor) const noexcept {
    const c10::StorageImpl* storage = storage_of(tensor);
    if (storage == nullptr) return trace::SiteId::none;
    trace::SiteId site = trace::SiteId::none;
    if (device_slot_of(tensor) == own_) {
      const auto copy = find_copy(storage, Copied::away);
      if (copy && contains(copy->device)) site = copy->site;
    } else {
      const trace::LineageNode node = runtime.recorder->lineage(origin_table().find(storage));
      const bool moved = node.how == trace::How::moved && contains(node.device);
      if (moved && runtime.recorder->lineage(node.parent).device == own_) site = node.site;
    }
    if (site == trace::SiteId::none) return site;
    // What torch moves, as Module.to() does, it moves as a whole; not what a method of the program's own hands to the
    // function that Module._apply() was given: `self.scale = fn(self.scale)`.
    const trace::Site at = runtime.recorder->site(site);
    return is_same(at.user, at.innermost) || hands_to_function(at) ? site : trace::SiteId::none;
  }

 private:
  bool contains(trace::DeviceSlot device) const noexcept { return inquiry_.is_wanted(operand_, device); }

  const Inquiry& inquiry_;
  const std::size_t operand_;
  const trace::DeviceSlot own_;
};

// The tensors among what a container or a frame holds that were moved.
class MovedEntries final : public LinkVisitor {
 public:
  MovedEntries(const Inquiry& inquiry, const void* own, const Wanted& wanted)
      : inquiry_(inquiry), own_(own), wanted_(wanted) {}

  struct Move {
    Link link{};
    int count = 0;
  };
  // The one that most of them came by; null where fewer than `at_least` came by any.
  const std::pair<const trace::SiteId, Move>* usual(int at_least) const {
    const auto most = std::ranges::max_element(moves_, {}, [](const auto& entry) { return entry.second.count; });
    return most != moves_.end() && most->second.count >= at_least ? &*most : nullptr;
  }
  void stop_after(int entries) { left_ = entries; }
  bool stopped() const { return left_ < 0; }

  bool link(const Link& link, void* object) override {
    if (left_-- == 0) return false;
    const c10::TensorImpl* tensor = object != own_ ? inquiry_.search.tensor_at(object) : nullptr;
    const trace::SiteId site = tensor != nullptr ? wanted_.move_of(tensor) : trace::SiteId::none;
    if (site == trace::SiteId::none) return true;
    Move& move = moves_[site];
    if (move.count++ == 0) move.link = link;
    return true;
  }

 private:
  const Inquiry& inquiry_;
  const void* const own_;
  const Wanted& wanted_;
  int left_ = kMaxEntries;
  std::map<trace::SiteId, Move> moves_;
};

// Those of a frame's variables whose names stand in a text.
class NamedEntries final : public LinkVisitor {
 public:
  NamedEntries(const Inquiry& inquiry, const void* own, const Wanted& wanted, std::string_view names)
      : moved(inquiry, own, wanted), names_(names) {}
  MovedEntries moved;
  bool link(const Link& link, void* object) override {
    return !has_word(names_, written(link)) || moved.link(link, object);
  }

 private:
  const std::string_view names_;
};

// The line of the function at `site` that makes a new object of the holder's type.
std::optional<trace::Position> rebuilt_at(const Inquiry& inquiry, const trace::Position& moved, const void* holder) {
  const void* code = code_at(inquiry, moved);
  if (code == nullptr) return std::nullopt;
  std::optional<trace::Position> found;
  SourceFiles files;
  const ByteCode byte_code(code);
  for (const Instruction& one : byte_code.instructions()) {
    if (one.operation != Operation::load_variable || !is_name(one.operand, short_type_name(holder))) continue;
    const trace::Position at = position_of(code, one.offset);
    if (call_in(files.line(at.file, at.line), short_type_name(holder)) == std::string_view::npos) continue;
    if (found && found->line != at.line) return std::nullopt;
    found = at;
  }
  return found;
}

// `for key in ("exp_avg", "exp_avg_sq"):` around the move: names that are written out, and this one is not among them.
void add_names_listed(const Inquiry& inquiry, std::size_t operand, const trace::Position& moved, const Link& sibling) {
  const std::uint32_t at = inquiry.search.sighting(operand).place;
  if (at == kNoPlace || inquiry.search.place(at).link.name == nullptr || sibling.name == nullptr) return;
  const auto listed = Listing(moved, 0).find();
  if (!listed) return;
  const std::string name = text_of(inquiry.search.place(at).link.name);
  const std::string other = text_of(sibling.name);
  if (!mentions_name(listed->text, other) || mentions_name(listed->text, name)) return;
  inquiry.found.add(trace::EvidenceKind::names_listed_at, operand, listed->at, name);
}

// `return value` under a condition, beside `return value.to(where)` in the same function: the condition.
std::optional<trace::Position> handed_back_as_it_is(const SourceLines& lines, const trace::Position& moved) {
  constexpr std::string_view kReturn = "return ";
  const std::string statement = statement_at(lines, moved.line);
  const std::string value = statement.starts_with(kReturn) ? leading_name(statement.substr(kReturn.size())) : "";
  const int definition = enclosing_line(lines, moved.line, "def ");
  if (value.empty() || definition == 0 || !statement.substr(kReturn.size() + value.size()).starts_with(".to(")) {
    return std::nullopt;
  }
  const int end = end_of_function(lines, moved.line);
  for (int k = definition + 1; k <= end; ++k) {
    if (k == moved.line || is_blank(lines[k]) || statement_at(lines, k) != std::string(kReturn) + value) continue;
    const int condition = enclosing_line(lines, k, "if ");
    if (condition > definition) return position_at(moved.file, condition, qualified_function(lines, condition));
  }
  return std::nullopt;
}

// `ready[name] = value`, beside `ready[name] = value.to(where)` in another branch of the same function.
std::optional<trace::Position> put_as_it_is(const trace::Position& moved) {
  SourceFiles files;
  const SourceLines lines(files.whole(moved.file));
  if (auto condition = handed_back_as_it_is(lines, moved)) return condition;
  const auto stored = entry_stored(statement_at(lines, moved.line));
  const std::string value = stored ? stored->value : "";
  const std::size_t move = std::min(value.find(".to("), value.find(".cuda("));
  const int definition = enclosing_line(lines, moved.line, "def ");
  if (move == value.npos || !is_identifier(value.substr(0, move)) || definition == 0) return std::nullopt;
  const int end = end_of_function(lines, moved.line);
  for (int k = definition + 1; k <= end; ++k) {
    const bool stores = k != moved.line && lines[k].find(stored->container) != std::string_view::npos;
    const auto other = stores ? entry_stored(statement_at(lines, k)) : std::nullopt;
    if (!other || other->container != stored->container || other->key != stored->key) continue;
    if (other->value == value.substr(0, move)) return position_at(moved.file, k, qualified_function(lines, k));
  }
  return std::nullopt;
}

void add(const Inquiry& inquiry, std::size_t operand, trace::SiteId site, const Link& link, const void* holder) {
  const trace::Position moved = runtime.recorder->site(site).user;
  inquiry.found.add(trace::EvidenceKind::sibling_moved, operand, moved, written(link));
  if (const auto at = put_as_it_is(moved)) {
    inquiry.found.add(trace::EvidenceKind::put_as_it_is_at, operand, *at, written(link));
  }
  add_names_listed(inquiry, operand, moved, link);
  find_put_beside(inquiry, operand, moved);
  if (holder == nullptr) return;
  if (const auto at = rebuilt_at(inquiry, moved, holder)) {
    inquiry.found.add(trace::EvidenceKind::rebuilt_at, operand, *at, short_type_name(holder));
  }
}

// The containers that an object keeps.
class Containers final : public LinkVisitor {
 public:
  explicit Containers(const void* object) { visit_links(const_cast<void*>(object), *this); }
  const std::vector<void*>& found() const { return found_; }
  bool link(const Link&, void* object) override {
    if (is_container(object)) found_.push_back(object);
    return found_.size() < kMaxContainers;
  }

 private:
  std::vector<void*> found_;
};

// What an object keeps one step further in, where it is the object itself that moved some of that.
bool find_in_parts(const Inquiry& inquiry, std::size_t operand, const Wanted& wanted, const void* holder) {
  MovedEntries entries(inquiry, inquiry.object_of(operand), wanted);
  const Containers parts(holder);
  for (void* part : parts.found()) visit_links(part, entries);
  const auto* move = entries.stopped() ? nullptr : entries.usual(1);
  if (move == nullptr) return false;
  const trace::Position at = runtime.recorder->site(move->first).user;
  const std::string own = std::string(short_type_name(holder)) + ".";
  if (runtime.recorder->string(at.function).find(own) == std::string_view::npos) return false;
  add(inquiry, operand, move->first, move->second.link, holder);
  return true;
}

// What holds an operand, directly or through one another, but no modules: the nearest first.
struct Holders {
  struct One {
    const void* object;
    std::size_t inside;  // the one that it holds; kOperand for the operand itself
  };
  static constexpr std::size_t kOperand = ~std::size_t{0};
  std::vector<One> all;

  // From this one inwards.
  std::vector<const void*> way_from(std::size_t index) const {
    std::vector<const void*> way;
    for (std::size_t at = index; at != kOperand; at = all[at].inside) way.push_back(all[at].object);
    return way;
  }
};

void add_containers(const Inquiry& inquiry, const void* object, Holders& holders) {
  std::unordered_set<const void*> seen{object};
  const auto add_holders_of = [&](const void* held, std::size_t inside) {
    for (const Holding& holding : inquiry.search.holdings_of(held)) {
      if (holding.link.kind == LinkKind::closure) continue;  // what a function means need not belong together
      if (is_torch_module(holding.holder) || !seen.insert(holding.holder).second) continue;
      holders.all.push_back({holding.holder, inside});
    }
  };
  std::size_t next = holders.all.size();
  add_holders_of(object, next == 0 ? Holders::kOperand : next - 1);
  for (; next < holders.all.size() && holders.all.size() < kMaxContainers; ++next) {
    add_holders_of(holders.all[next].object, next);
  }
}

// Whether a frame's variable has what the function was called with: an argument, or the rest of them.
bool is_argument(const Place& root) {
  return root.frame != nullptr && root.link.kind == LinkKind::local &&
         root.link.index < code_all_arguments(frame_code(root.frame));
}

// Whether a container is made by a call of what it passes on: `*args` or `**kwargs`.
bool is_rest_of_arguments(const Inquiry& inquiry, const void* holder) {
  const std::uint32_t at = inquiry.search.find_place(holder);
  if (at == kNoPlace || !inquiry.search.is_root(at)) return false;
  const Place& root = inquiry.search.place(at);
  return is_argument(root) && root.link.index >= code_named_arguments(frame_code(root.frame));
}

// `{k: v.to(device) for k, v in kwargs.items()}`: whether the line goes through all that the container's variable has.
bool goes_through(const Inquiry& inquiry, trace::SiteId site, const void* holder) {
  const trace::Position moved = runtime.recorder->site(site).user;
  SourceFiles files;
  const std::string statement = statement_at(SourceLines(files.whole(moved.file)), moved.line);
  const std::size_t in = statement.find(" in ");
  const Link& variable = inquiry.search.place(inquiry.search.find_place(holder)).link;
  return in != statement.npos && has_word(std::string_view(statement).substr(in), written(variable));
}

// One line that moved several arguments went through them all, and passed this one over. A single argument proves
// nothing: what else the function was given need not come from the same place.
constexpr int kSeveral = 2;

// `at`: the operand, or what keeps the tensor that it is a view of.
void find_among_arguments(const Inquiry& inquiry, std::size_t operand, const Wanted& wanted, std::uint32_t at) {
  if (at == kNoPlace) return;
  // A weight is no part of a batch, unless the function was given it as such.
  if (inquiry.owner_of(operand) != nullptr && !inquiry.search.is_root(at)) return;
  const bool inside = !inquiry.search.is_root(at);
  while (!inquiry.search.is_root(at)) at = inquiry.search.place(at).parent;
  const Place& root = inquiry.search.place(at);
  // What an object keeps has not come with what its method is given.
  if (!is_argument(root) || (inside && written(root.link) == "self")) return;
  MovedEntries entries(inquiry, inquiry.identities[operand].object, wanted);
  entries.stop_after(code_all_arguments(frame_code(root.frame)));
  visit_frame(root.frame, false, entries);
  if (const auto* move = entries.usual(kSeveral)) add(inquiry, operand, move->first, move->second.link, nullptr);
}

// `prompt = history["semantic"][None]` is not in the batch, but the tensor that it is a view of is.
void find_beside_base(const Inquiry& inquiry, std::size_t operand, const Wanted& wanted) {
  for (const Holding& holding : inquiry.search.holdings_of_base(operand)) {
    if (is_torch_module(holding.holder)) continue;
    const std::uint32_t at = inquiry.search.find_place(holding.holder);
    if (at == kNoPlace) continue;
    return find_among_arguments(inquiry, operand, wanted, at);
  }
}

// `for x, y, mask in prefetch(loader):` gave the operand, or what it was computed from, its name beside others that the
// function which is called there has moved.
bool find_among_unpacked(const Inquiry& inquiry, std::size_t operand, const Wanted& wanted, std::uint32_t at) {
  if (at == kNoPlace || !inquiry.search.is_root(at) || inquiry.search.place(at).frame == nullptr) return false;
  const Place& root = inquiry.search.place(at);
  const auto binding = binding_at(inquiry, operand, root);
  if (!binding) return false;
  SourceFiles files;
  const std::string statement = statement_at(SourceLines(files.whole(binding->at.file)), binding->at.line);
  const std::string_view text = statement;
  const std::size_t targets = text.find(text.starts_with("for ") ? " in " : " = ");
  if (targets == text.npos || !has_word(text.substr(0, targets), binding->name)) return false;
  NamedEntries entries(inquiry, root.object, wanted, text.substr(0, targets));
  visit_frame(root.frame, is_module_body(frame_code(root.frame)), entries);
  const auto* move = entries.moved.usual(1);
  if (move == nullptr) return false;
  const std::string_view function = runtime.recorder->string(runtime.recorder->site(move->first).user.function);
  const std::string_view own = trace::own_name(function);
  if (call_in(text.substr(targets), own) == text.npos) return false;
  add(inquiry, operand, move->first, move->second.link, nullptr);
  return true;
}

// A batch whose own entries are containers: what was moved is one step further in. That says something only of a
// function that goes through all of them, and is seen to let one pass.
bool find_beside_passed_over(const Inquiry& inquiry, std::size_t operand, const Wanted& wanted, const void* object,
                             std::span<const void* const> way) {
  if (!is_dict(way.front()) && !is_list(way.front()) && !is_tuple(way.front())) return false;
  MovedEntries entries(inquiry, object, wanted);
  const Containers parts(way.front());
  for (void* part : parts.found()) {
    if (way.size() > 1 && part != way[1]) visit_links(part, entries);
  }
  const auto* move = entries.stopped() ? nullptr : entries.usual(1);
  if (move == nullptr) return false;
  const trace::Position moved = runtime.recorder->site(move->first).user;
  if (!find_passed_over(inquiry, operand, moved, way)) return false;
  inquiry.found.add(trace::EvidenceKind::sibling_moved, operand, moved, written(move->second.link));
  return true;
}

bool find_among_holders(const Inquiry& inquiry, std::size_t operand, const Wanted& wanted, const void* object,
                        const Holders& holders) {
  for (std::size_t k = 0; k < holders.all.size(); ++k) {
    const void* holder = holders.all[k].object;
    MovedEntries entries(inquiry, object, wanted);
    visit_links(const_cast<void*>(holder), entries);
    if (entries.stopped()) continue;
    const auto* move = entries.usual(1);
    if (move == nullptr) continue;
    const bool single = move->second.count < kSeveral && is_rest_of_arguments(inquiry, holder);
    if (single && !goes_through(inquiry, move->first, holder)) continue;
    add(inquiry, operand, move->first, move->second.link, holder);
    find_passed_over(inquiry, operand, runtime.recorder->site(move->first).user, holders.way_from(k));
    return true;
  }
  for (std::size_t k = 0; k < holders.all.size(); ++k) {
    if (find_beside_passed_over(inquiry, operand, wanted, object, holders.way_from(k))) return true;
  }
  return std::ranges::any_of(holders.all, [&](const Holders::One& one) {
    const bool object_of_its_own = has_instance_dict(one.object) && !is_torch_module(one.object);
    return object_of_its_own && find_in_parts(inquiry, operand, wanted, one.object);
  });
}

// What keeps the tensor that an operand was computed from.
Holders holders_of_ancestor(const Inquiry& inquiry, const Ancestor& ancestor) {
  Holders holders;
  if (ancestor.place == kNoPlace || !ancestor.certain || inquiry.search.is_root(ancestor.place)) return holders;
  const void* holder = inquiry.search.place(inquiry.search.place(ancestor.place).parent).object;
  if (is_torch_module(holder)) return holders;
  holders.all.push_back({holder, Holders::kOperand});
  add_containers(inquiry, holder, holders);
  return holders;
}

}  // namespace

void find_moved_siblings(const Inquiry& inquiry, std::size_t operand) {
  const void* object = inquiry.object_of(operand);
  if (object == nullptr) return;
  const Wanted wanted(inquiry, operand);
  Holders holders;
  add_containers(inquiry, object, holders);
  if (const Holding* owner = inquiry.search.owner(object)) holders.all.push_back({owner->holder, Holders::kOperand});
  if (find_among_holders(inquiry, operand, wanted, object, holders)) return;
  find_among_arguments(inquiry, operand, wanted, inquiry.search.sighting(operand).place);
  const Ancestor& ancestor = inquiry.search.ancestor(operand);
  if (find_among_unpacked(inquiry, operand, wanted, inquiry.search.sighting(operand).place)) return;
  if (ancestor.certain && find_among_unpacked(inquiry, operand, wanted, ancestor.place)) return;
  if (!holders.all.empty() || find_taken_alike(inquiry, operand)) return;
  find_beside_base(inquiry, operand, wanted);
  find_among_holders(inquiry, operand, wanted, object, holders_of_ancestor(inquiry, ancestor));
}

}  // namespace devsan::hooks
