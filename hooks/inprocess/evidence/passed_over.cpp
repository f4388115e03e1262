// A function that moves the parts of a batch by what they are, and hands back unchanged what it knows no branch for:
// `return data`. Where one part was moved and another was not, and the function does not know the type that holds the
// other, that is the line which let it pass.
#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/interpreter/byte_code.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/sites.h"
#include "trace/function_names.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxInside = 3;  // functions and comprehensions in one another

template <std::size_t N>
bool is_one_of(const void* name, const std::array<std::string_view, N>& names) {
  return std::ranges::any_of(names, [name](std::string_view one) { return is_name(name, one); });
}

// A name that a class may have: a constant or a variable that stands for several is written otherwise.
bool is_class_name(const void* name) {
  constexpr std::array<std::string_view, 15> kBuiltins = {"dict", "list",  "tuple",       "set",     "frozenset",
                                                          "str",  "bytes", "int",         "float",   "bool",
                                                          "type", "deque", "defaultdict", "ndarray", "complex"};
  if (is_one_of(name, kBuiltins)) return true;
  char buffer[256];
  const std::string_view text = text_of(name, buffer, sizeof buffer);
  const auto is_lower = [](char c) { return std::islower(static_cast<unsigned char>(c)) != 0; };
  return !text.empty() && std::isupper(static_cast<unsigned char>(text.front())) != 0 &&
         std::ranges::any_of(text, is_lower);
}

// What a function does with one argument whose type it asks for.
class Mover {
 public:
  explicit Mover(const void* code) : byte_code_(code), code_(code) {
    for (int k = 0; k < code_named_arguments(code) && argument_ == nullptr; ++k) look_at(code_local_name(code, k));
  }

  // The only line behind the first question that returns the argument as it came.
  const std::optional<trace::Position>& handed_back() const { return handed_back_; }

  // The question about the type that is most like an object's: of lists for a tuple, and the other way round; of
  // dictionaries for a UserDict, as tokenizers of transformers return.
  struct Branch {
    const void* type;
    trace::Position at;
  };
  const Branch* branch_beside(const void* object) const {
    const std::string_view like = is_tuple(object)     ? "list"
                                  : is_list(object)    ? "tuple"
                                  : is_mapping(object) ? "dict"
                                                       : "";
    const auto found = std::ranges::find_if(branches_, [&](const Branch& one) { return is_name(one.type, like); });
    return like.empty() || found == branches_.end() ? nullptr : &*found;
  }

  // Whether it moves anything.
  bool moves() const {
    return std::ranges::any_of(trace::kMoves, [this](std::string_view name) { return mentions_text(code_, name); });
  }

  // Whether the function calls itself, so that it sees everything inside of what it is given.
  bool recursive() const { return names_itself(code_, 0); }

  // Whether nothing that the function asks for can be meant by the object's type.
  bool passes_over(const void* object) const {
    if (!certain_ || is_taken_apart_otherwise(object) || (asks_for_move() && can_move(object))) return false;
    return !has_base(object, [this](std::string_view base) {
      return std::ranges::any_of(branches_, [base](const Branch& one) { return is_name(one.type, base); });
    });
  }

 private:
  // Whether the type of an object, or one that it is derived from, has a name that is accepted.
  template <class Accepts>
  static bool has_base(const void* object, Accepts accepts) {
    const void* bases = field<const void*>(type_of(object), kTypeMro);
    for (std::ptrdiff_t k = 0; tuple_entry(bases, k) != nullptr; ++k) {
      std::string_view base = field<const char*>(tuple_entry(bases, k), kTypeName);
      base.remove_prefix(base.rfind('.') + 1);
      if (accepts(base)) return true;
    }
    return false;
  }

  // Of a type that is derived from one: what is merely registered as a Mapping does not show.
  static bool is_mapping(const void* object) {
    return has_base(object, [](std::string_view base) { return base == "UserDict" || base == "Mapping"; });
  }

  static bool loads(const Instruction& one) {
    return one.operation == Operation::load_variable || one.operation == Operation::load_attribute;
  }

  void look_at(const void* argument) {
    const auto& all = byte_code_.instructions();
    bool asked = false;
    for (std::size_t k = 0; k + 1 < all.size(); ++k) {
      const bool itself = same_name(all[k].operand, argument);
      if (itself && stores(all[k].operation)) return forget();
      if (asks(k, argument)) {
        asked = true;
        note_types(k, argument);
      }
      const bool handed_back =
          itself && all[k].operation == Operation::load_variable && all[k + 1].operation == Operation::stop && asked;
      if (!handed_back) continue;
      const trace::Position at = position_of(code_, all[k].offset);
      if (handed_back_ && handed_back_->line != at.line) return forget();
      handed_back_ = at;
    }
    if (!handed_back_) return forget();
    argument_ = argument;
  }

  void forget() {
    handed_back_.reset();
    branches_.clear();
    certain_ = true;
  }

  static bool stores(Operation operation) {
    return operation == Operation::store_variable || operation == Operation::store_cell ||
           operation == Operation::delete_variable;
  }

  // `isinstance(argument, …)`, `torch.is_tensor(argument)`
  bool asks(std::size_t k, const void* argument) const {
    constexpr std::array<std::string_view, 5> kQuestions = {"isinstance", "issubclass", "is_tensor", "hasattr", "type"};
    constexpr std::size_t kNear = 3;
    const auto& all = byte_code_.instructions();
    if (!loads(all[k]) || !is_one_of(all[k].operand, kQuestions)) return false;
    for (std::size_t next = k + 1; next < std::min(k + 1 + kNear, all.size()); ++next) {
      if (all[next].operation == Operation::load_variable) return same_name(all[next].operand, argument);
    }
    return false;
  }

  // The names of the types that a question is about: behind the argument, or behind the call of `type(argument)`.
  void note_types(std::size_t k, const void* argument) {
    const auto& all = byte_code_.instructions();
    if (is_name(all[k].operand, "is_tensor") || is_name(all[k].operand, "hasattr")) return;
    const bool compares = is_name(all[k].operand, "type");
    while (!(all[k].operation == Operation::load_variable && same_name(all[k].operand, argument))) ++k;
    for (++k; compares && k < all.size() && all[k].operation == Operation::other; ++k) {
    }
    for (; k < all.size() && loads(all[k]); ++k) {
      const bool of_module = k + 1 < all.size() && all[k + 1].operation == Operation::load_attribute;
      const bool type = !of_module && is_class_name(all[k].operand);
      if (type) branches_.push_back({all[k].operand, position_of(code_, all[k].offset)});
      certain_ = certain_ && (type || of_module || compares);  // `type(argument)(…)` makes one more of its kind
    }
  }

  bool asks_for(std::initializer_list<std::string_view> names) const {
    return std::ranges::any_of(names, [this](std::string_view name) { return mentions_text(code_, name); });
  }

  // Abstract classes know what does not descend from them, and objects are taken apart by their fields.
  bool is_taken_apart_otherwise(const void* object) const {
    if (asks_for({"Iterable", "Collection", "Container", "Sized"})) return true;
    if (is_dict(object)) return asks_for({"Mapping", "MutableMapping"});
    if (is_list(object) || is_tuple(object)) return asks_for({"Sequence", "MutableSequence", "Reversible"});
    return asks_for({"is_dataclass", "fields", "vars", "__dict__", "Set", "callable"}) || asks_for_other_attribute();
  }

  // What `hasattr(argument, "shape")` asks for; null where no constant is near.
  const void* attribute_asked(std::size_t k) const {
    constexpr std::size_t kNear = 3;
    const auto& all = byte_code_.instructions();
    for (std::size_t next = k + 1; next <= std::min(k + kNear, all.size() - 1); ++next) {
      if (all[next].operation == Operation::load_constant) return all[next].operand;
    }
    return nullptr;
  }

  template <class Holds>
  bool any_attribute_asked(Holds holds) const {
    const auto& all = byte_code_.instructions();
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (loads_name(all[k], "hasattr") && holds(attribute_asked(k))) return true;
    }
    return false;
  }

  // `hasattr(argument, "to")`: what can move itself.
  bool asks_for_move() const {
    return any_attribute_asked([](const void* name) { return name != nullptr && is_one_of(name, trace::kMoves); });
  }
  bool asks_for_other_attribute() const {
    return any_attribute_asked([](const void* name) { return name == nullptr || !is_one_of(name, trace::kMoves); });
  }
  static bool can_move(const void* object) {
    const auto has = [&](std::string_view name) { return method_named(type_of(object), name) != nullptr; };
    return has_base(object, [](std::string_view base) { return base == "Tensor"; }) ||
           std::ranges::any_of(trace::kMoves, has);
  }

  static bool names_itself(const void* code, int depth, const void* name) {
    const ByteCode byte_code(code);
    for (const Instruction& one : byte_code.instructions()) {
      if (loads(one) && same_name(one.operand, name)) return true;
    }
    const void* constants = code_constants(code);
    for (std::ptrdiff_t k = 0; depth < kMaxInside && tuple_entry(constants, k) != nullptr; ++k) {
      const void* inner = tuple_entry(constants, k);
      if (type_of(inner) == type_of(code) && names_itself(inner, depth + 1, name)) return true;
    }
    return false;
  }
  static bool names_itself(const void* code, int depth) {
    return names_itself(code, depth, field<const void*>(code, code_members.name));
  }

  const ByteCode byte_code_;
  const void* const code_;
  const void* argument_ = nullptr;
  std::optional<trace::Position> handed_back_;
  std::vector<Branch> branches_;
  bool certain_ = true;
};

// The outermost object on the way to the operand that the mover lets pass. One that does not call itself is given the
// entries of the outermost, one by one.
const void* let_pass(const Mover& mover, std::span<const void* const> way) {
  const bool recursive = mover.recursive();
  if (!recursive && !mover.passes_over(way.front())) return nullptr;
  for (const void* object : way.subspan(1, recursive ? way.size() - 1 : 1)) {
    if (mover.passes_over(object)) return object;
  }
  return nullptr;
}

// The function that the move stands in; or, where that is handed to another one, `apply(lambda t: t.to(dev), batch)`,
// those that the function around it names.
std::vector<const void*> movers_of(const Inquiry& inquiry, const trace::Position& moved, const void* code) {
  std::vector<const void*> movers;
  if (code != nullptr) movers.push_back(code);
  constexpr std::string_view kInside = ".<locals>.";
  const std::string_view function = trace::function_around(runtime.recorder->string(moved.function));
  const std::size_t inside = function.rfind(kInside);
  if (inside == function.npos && function != "<lambda>") return movers;
  trace::Position around = moved;
  around.function = runtime.recorder->intern_string(inside != function.npos ? function.substr(0, inside) : "<module>");
  const void* outer = code_at(inquiry, around);
  if (outer == nullptr) return movers;
  for (const void* other : inquiry.own_code.code()) {
    if (other != code && mentions(outer, field<const void*>(other, code_members.name))) movers.push_back(other);
  }
  return movers;
}

void add_passed_over(const Inquiry& inquiry, std::size_t operand, const Mover& mover, const void* object) {
  inquiry.found.add(trace::EvidenceKind::passed_over_at, operand, *mover.handed_back(), short_type_name(object));
  const auto* branch = mover.branch_beside(object);
  if (branch == nullptr) return;
  char buffer[64];
  inquiry.found.add(trace::EvidenceKind::branch_beside, operand, branch->at,
                    text_of(branch->type, buffer, sizeof buffer));
}

}  // namespace

bool find_passed_over(const Inquiry& inquiry, std::size_t operand, const trace::Position& moved,
                      std::span<const void* const> way) {
  if (way.size() < 2) return false;
  const void* code = code_at(inquiry, moved);
  for (const void* one : movers_of(inquiry, moved, code)) {
    const Mover mover(one);
    const bool applies = mover.handed_back() && (one == code || mover.recursive());
    const void* object = applies ? let_pass(mover, way) : nullptr;
    if (object == nullptr) continue;
    add_passed_over(inquiry, operand, mover, object);
    return true;
  }
  return false;
}

bool find_handed_back_whole(const Inquiry& inquiry, std::size_t operand, const void* code, const void* object,
                            bool given_whole) {
  const Mover mover(code);
  const bool whole = mover.recursive() || (given_whole && is_container(object));
  const bool passes = mover.handed_back() && whole && mover.passes_over(object);
  if (passes) add_passed_over(inquiry, operand, mover, object);
  return passes;
}

void find_entry_handed_back(const Inquiry& inquiry, std::size_t operand, const void* code, const void* object) {
  const Mover mover(code);
  if (mover.moves() && mover.handed_back() && mover.passes_over(object))
    add_passed_over(inquiry, operand, mover, object);
}

}  // namespace devsan::hooks
