#include "report/fixes/tensors.h"

#include <algorithm>
#include <array>

#include "report/program/definitions.h"
#include "report/program/expressions.h"
#include "report/program/flow.h"
#include "report/program/functions.h"
#include "report/program/literals.h"
#include "report/program/positions.h"
#include "report/program/source_file.h"
#include "report/slice/torch_names.h"

namespace devsan::report::fixes {

using program::CallParts;
using program::DefinitionKind;
using program::Field;
using program::Kind;
using program::Node;

namespace {

constexpr int kDeepestValue = 4;  // names and functions that stand for values

constexpr auto kAskedOfTensors = std::to_array<std::string_view>(
    {"shape",     "size",     "device",  "dtype",     "dim",     "view",        "flatten", "unsqueeze",
     "squeeze",   "sum",      "mean",    "detach",    "float",   "clone",       "numel",   "square",
     "abs",       "exp",      "reshape", "new_zeros", "permute", "transpose",   "softmax", "norm",
     "argmax",    "clamp",    "pow",     "sigmoid",   "relu",    "expand",      "T",       "new_ones",
     "new_empty", "new_full", "log",     "sqrt",      "matmul",  "masked_fill", "backward"});

constexpr auto kAskedOfOthers = std::to_array<std::string_view>(
    {"items", "keys", "append", "extend", "update", "get", "pop", "popleft", "setdefault", "parameters",
     "named_parameters", "state_dict", "load_state_dict", "eval", "train", "modules", "step", "zero_grad", "forward"});

// Functions, and methods, of which none gives a tensor.
constexpr auto kOtherFunctions = std::to_array<std::string_view>(
    {"list",  "dict", "tuple",   "zip",    "enumerate",  "range",   "set",         "len",       "int",
     "float", "str",  "bool",    "open",   "iter",       "sorted",  "reversed",    "print",     "super",
     "deque", "map",  "partial", "filter", "isinstance", "hasattr", "defaultdict", "namedtuple"});
constexpr auto kOtherMethods = std::to_array<std::string_view>(
    {"items", "keys", "chunk", "unbind", "tolist", "item", "state_dict", "parameters", "named_parameters", "meshgrid",
     "numel", "dim", "deepcopy", "DataLoader", "device", "deque", "defaultdict", "numpy"});

bool is_display(Node node) {
  switch (node.kind()) {
    case Kind::Tuple:
    case Kind::List:
    case Kind::Dictionary:
    case Kind::Set:
    case Kind::ExpressionList:
    case Kind::Lambda:
    case Kind::BooleanOperator:
    case Kind::NotOperator:
    case Kind::Yield:
      return true;
    default:
      return program::is_comprehension(node) || program::is_literal(node) || program::is_string(node);
  }
}

bool is_test(Node comparison) {
  return std::ranges::any_of(program::operations(comparison), [](const program::OperationParts& one) {
    return one.operation == "in" || one.operation == "not in" || one.operation.starts_with("is");
  });
}

class Judge {
 public:
  explicit Judge(const slice::Code& code) : code_(code) {}

  bool is_other(Node given, int depth) const {
    const Node node = program::awaited(given);
    if (!node || is_display(node)) return true;
    if (depth > kDeepestValue) return false;
    switch (node.kind()) {
      case Kind::ComparisonOperator:
        return is_test(node);
      case Kind::Identifier:
        return is_other_name(node, depth);
      case Kind::Call:
        return is_other_call(program::call_parts(node), depth);
      case Kind::Attribute: {
        const std::string_view name = slice::last_name(node);
        return name == "shape" || name == "dtype" || name == "device" || name == "ndim" || is_kept_as_other(name);
      }
      case Kind::Subscript: {  // of a shape
        const Node container = node.child(Field::Value);
        return container.is(Kind::Attribute) && slice::last_name(container) == "shape";
      }
      case Kind::ConditionalExpression: {
        const program::ConditionalParts parts = program::conditional_parts(node);
        return is_other(parts.if_true, depth + 1) || is_other(parts.if_false, depth + 1);
      }
      case Kind::BinaryOperator: {
        const std::vector<Node> operands = program::operands(node, true);
        return std::ranges::all_of(operands, [&](Node one) { return is_other(one, depth + 1); });
      }
      default:
        return false;
    }
  }

 private:
  // Some line stores a list, dictionary or the like as the attribute.
  bool is_kept_as_other(std::string_view attribute) const {
    const slice::Definitions stores = code_.stores(attribute);
    return std::ranges::any_of(stores, [](const program::Definition* one) {
      const Node value = one->own_value();
      if (!value || program::is_literal(value)) return false;
      const bool call = value.is(Kind::Call) && !program::call_parts(value).receiver();
      return is_display(value) || (call && slice::is_one_of(kOtherFunctions, slice::called_name(value)));
    });
  }

  bool is_other_name(Node name, int depth) const {
    if (is_used_as_other(slice::body_of(name), name.text())) return true;
    const program::Reaching reaching = name.file().flow().reaching(name);
    return std::ranges::any_of(reaching.definitions, [&](const program::Reached& one) {
      const program::Definition& definition = *one.definition;
      switch (definition.kind) {
        case DefinitionKind::Import:
        case DefinitionKind::Function:
        case DefinitionKind::Class:
          return true;
        case DefinitionKind::Assignment:
          return definition.path.empty() && !program::is_literal(definition.value) &&
                 is_other(definition.value, depth + 1);
        default:
          return false;
      }
    });
  }

  bool is_other_call(const CallParts& call, int depth) const {
    const std::string_view called = slice::called_name(call.call);
    if (!code_.classes(called).empty() || slice::makes_layer(call.callee) || slice::is_optimizer(called)) return true;
    for (const Node function : code_.functions(called)) {
      if (call.receiver() && !program::class_of_method(function)) continue;
      const program::Returns returns = program::returns_of(function);
      if (!returns.yielded.empty() || returns.values.empty()) return true;
      if (std::ranges::any_of(returns.values, [&](Node one) { return is_other(one, depth + 1); })) return true;
    }
    if (!code_.functions(called).empty()) return false;
    return call.receiver() ? slice::is_one_of(kOtherMethods, called) : slice::is_one_of(kOtherFunctions, called);
  }

  const slice::Code& code_;
};

template <class Visit>
bool any_mention(Node function, std::string_view name, const Visit& visit) {
  for (const Node node : function.subtree()) {
    if (node.is(Kind::Identifier) && node.text() == name && program::is_variable_name(node) && visit(node)) return true;
  }
  return false;
}

}  // namespace

bool is_no_tensor(Node expression, const slice::Code& code) {
  return Judge(code).is_other(expression, 0);
}

bool is_used_as_tensor(Node function, std::string_view parameter) {
  return any_mention(function, parameter, [](Node mention) {
    const Node parent = mention.parent();
    const bool asked = parent.is(Kind::Attribute) && mention.role() == Field::Object;
    return asked && slice::is_one_of(kAskedOfTensors, slice::last_name(parent));
  });
}

bool is_used_as_other(Node function, std::string_view name) {
  return any_mention(function, name, [](Node mention) {
    const Node parent = mention.parent();
    if (parent.is(Kind::ListSplat) || parent.is(Kind::DictionarySplat)) return true;
    if (parent.is(Kind::Call) && mention.role() == Field::Function) return true;
    if (parent.is(Kind::Assignment) && mention.role() == Field::Right) {
      const Node target = parent.child(Field::Left);
      return target.is(Kind::PatternList) || target.is(Kind::TuplePattern) || target.is(Kind::ListPattern);
    }
    if (parent.is(Kind::Subscript) && mention.role() == Field::Value) {
      const std::vector<Node> keys = parent.children(Field::Subscript);
      return !keys.empty() && program::is_string(keys.front());
    }
    const bool asked = parent.is(Kind::Attribute) && mention.role() == Field::Object;
    return asked && slice::is_one_of(kAskedOfOthers, slice::last_name(parent));
  });
}

bool is_derived_from_module(Node class_definition, const slice::Code& code) {
  std::vector<Node> open = {class_definition};
  for (std::size_t k = 0; k < open.size() && k < 16; ++k) {
    for (const Node base : program::bases_of(open[k])) {
      const std::string_view name = slice::last_name(base);
      if (name == "Module" || name.ends_with("Module")) return true;
      for (const Node known : code.classes(name)) open.push_back(known);
    }
  }
  return false;
}

}  // namespace devsan::report::fixes
