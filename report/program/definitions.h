// Where variables get their values, and where they are read.
//
// A variable is a name, or what is reached from a name by attributes and subscripts: `x`, `self.net.scale`, `d['k']`.
// A call that changes an object is no definition.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/program/node.h"
#include "report/program/scopes.h"

namespace devsan::program {

struct Variable {
  std::string_view name;           // empty where the path begins with something else: `f().x`
  std::vector<std::string> steps;  // ".net", "[0]", "['k']"; "[]" for a subscript that is no literal
  std::string text() const;        // "self.net['k']"
  bool operator==(const Variable&) const = default;
};

// Of a name, attribute or subscript; none for other expressions.
std::optional<Variable> variable_of(Node expression);

// How the one variable's value depends on a store to the other.
enum class Overlap : std::uint8_t {
  None,
  Whole,    // `stored` is `read`, or holds it: x = … for x.y
  Perhaps,  // the same but for a subscript that is no literal
  Part,     // `stored` is a part of `read`: x.y = … for x
};
Overlap overlap(const Variable& stored, const Variable& read);

enum class DefinitionKind : std::uint8_t {
  Assignment,
  Augmented,
  Declaration,   // `x: int`: binds the name, gives no value
  SetAttribute,  // setattr(obj, "name", value)
  Walrus,
  Parameter,
  LoopTarget,
  ComprehensionTarget,
  WithTarget,
  ExceptTarget,
  MatchCapture,
  Import,
  StarImport,  // has no variable
  Function,
  Class,
  TypeAlias,
  TypeParameter,
  Delete,
};

struct Definition {
  // In `path`: the element that collects the rest, `*rest`.
  static constexpr int kRest = std::numeric_limits<int>::max();

  DefinitionKind kind = DefinitionKind::Assignment;
  Variable variable;
  Node target;     // the name, attribute or subscript; of setattr() the call
  Node statement;  // the assignment, loop, with_item, parameter, import, definition …
  Node value;      // the assigned expression; the iterable of a loop, the manager of a with, a parameter's default
  // Where the target stands in the value when that is unpacked: {1, 0} for b in `a, (b, c) = value`. Elements behind a
  // starred one count from the end: -1 is the last. Empty when the target gets the value itself.
  std::vector<int> path;
  std::string origin;              // of an import, dotted: "torch.nn"; ".utils.f" where it is relative
  const Scope* scope = nullptr;    // whose code it is
  const Scope* binding = nullptr;  // that owns the name; null for the name of a builtin
  bool certain = true;             // always happens when its statement runs

  bool is_attribute_store() const { return !variable.steps.empty() && variable.steps.back().front() == '.'; }
  bool is_subscript_store() const { return !variable.steps.empty() && variable.steps.back().front() == '['; }
  bool is_name() const { return variable.steps.empty(); }
  // The part of the value that the target gets, where the value is a display: `b` of `a, c = x, b`. The value itself
  // without unpacking. None if the source does not tell.
  Node own_value() const;
};

class Definitions {
 public:
  Definitions(const SourceFile& file, Scopes& scopes);

  const std::vector<Definition>& all() const { return all_; }  // in the order of the text
  // Of the plain name that `binding` owns, wherever in the file.
  std::vector<const Definition*> of_name(const Scope& binding, std::string_view name) const;
  // Besides, stores to what is reached from that name: `x.y = …` for x.
  std::vector<const Definition*> of_root(const Scope& binding, std::string_view name) const;
  // Stores to `….name`, by assignment or setattr(), whatever the object.
  std::vector<const Definition*> of_attribute(std::string_view name) const;
  // Whose target or statement the node is.
  std::vector<const Definition*> at(Node node) const;
  // Names that are read, of the variable that `binding` owns.
  std::vector<Node> uses(const Scope& binding, std::string_view name) const;
  // The code of this scope itself; not that of functions and classes in it.
  std::vector<const Definition*> in(const Scope& scope) const;

 private:
  void bind(Scopes& scopes);
  void index_uses(const SourceFile& file, const Scopes& scopes);

  using Key = std::pair<std::uint32_t, std::string_view>;
  std::vector<Definition> all_;
  std::map<Key, std::vector<std::uint32_t>> by_name_;
  std::map<Key, std::vector<std::uint32_t>> by_root_;
  std::map<std::string, std::vector<std::uint32_t>, std::less<>> by_attribute_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> by_node_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> by_scope_;
  std::map<Key, std::vector<Node>> uses_;
};

// The identifier is read or written as a variable: no attribute's, keyword's or module's name.
bool is_variable_name(Node identifier);

}  // namespace devsan::program
