// Expressions taken apart.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/program/node.h"

namespace devsan::program {

struct Argument {
  enum class Kind : std::uint8_t { Positional, Keyword, Star, DoubleStar };
  Kind kind = Kind::Positional;
  std::string_view name;  // of a keyword
  Node value;
  Node node;  // the whole argument
};

struct CallParts {
  Node call;
  Node callee;
  std::vector<Argument> arguments;  // as they are written
  std::vector<Node> positional;     // those before the first `*`: their places are known
  bool has_star = false;
  bool has_double_star = false;

  explicit operator bool() const { return static_cast<bool>(call); }
  Node keyword(std::string_view name) const;
  // What a parameter gets: the keyword of that name, or what stands at `place`. None where neither is written.
  Node argument(std::string_view name, std::size_t place) const;
  // The object and the name of a method call: `x.y` and `to` of `x.y.to(d)`.
  Node receiver() const;
  std::string_view method() const;
};

// Empty for what is no call.
CallParts call_parts(Node node);

struct OperationParts {
  std::string_view operation;  // "+", "not in", "and", "-", "not"
  Node left;                   // none of an operation with one operand
  Node right;
};

// Binary, unary, boolean operations, `not`, and comparisons: `a < b < c` is two. Empty for others.
std::vector<OperationParts> operations(Node node);
// All operands of such a node, from the left; those of `a + b + c` are a, b and c if `flat`.
std::vector<Node> operands(Node node, bool flat = false);

struct ConditionalParts {
  Node condition;
  Node if_true;
  Node if_false;
};
ConditionalParts conditional_parts(Node node);

// Of a list, tuple, set, or several expressions with commas; of a dictionary the values.
std::vector<Node> elements(Node display);
struct Entry {
  Node key;  // none of `**other`
  Node value;
};
std::vector<Entry> entries(Node dictionary);

struct ComprehensionParts {
  Node element;  // of a dictionary's comprehension the value
  Node key;
  std::vector<Node> clauses;  // ForInClause with Left and Right, IfClause
};
bool is_comprehension(Node node);
ComprehensionParts comprehension_parts(Node node);

// The expression without the parentheses around it.
Node without_parentheses(Node node);
// Besides, without `await`.
Node awaited(Node node);

// "self.model.encoder", "torch.zeros"; empty for what is more than names and dots.
std::string dotted_name(Node node);
// The name that a dotted name, call, subscript or attribute begins with: `self` of `self.f(x)[0].y`.
Node root_of(Node node);

}  // namespace devsan::program
