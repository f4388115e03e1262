// What a function, lambda, class or module does in its own code; functions and classes inside of it are left out,
// comprehensions are not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/program/node.h"

namespace devsan::program {

struct Returns {
  std::vector<Node> values;      // expressions, as in `return a, b` one of both; of a lambda its body
  std::vector<Node> yielded;     // of a generator
  bool may_return_none = false;  // by a bare `return`, or at the end of its code
};
Returns returns_of(Node function);

// In the order of the text.
std::vector<Node> calls_in(Node function);
// In the whole file. To a name or a dotted name as it is written: "move", "self.move".
std::vector<Node> calls_to(const SourceFile& file, std::string_view dotted);
// To a method of that name, whatever the object.
std::vector<Node> calls_of_method(const SourceFile& file, std::string_view method);
// Method calls on what the variable names: `x.append(y)`, `x.a.to(d)` for x.
std::vector<Node> method_calls_on(Node function, std::string_view name);

// What `node` names, through the imports of its file: "torch.zeros" for `from torch import zeros as z` and `z`. A name
// that nothing in the file binds stays as it is: "len". Empty for a name that is bound by other means, and for what is
// no dotted name.
std::string origin_of(Node node);

// The decorators of a function or class, without `@`.
std::vector<Node> decorators_of(Node definition);
// The expressions that a class is derived from.
std::vector<Node> bases_of(Node class_definition);
std::vector<Node> methods_of(Node class_definition);
// Of that name, in this class alone.
Node method_of(Node class_definition, std::string_view name);

}  // namespace devsan::program
