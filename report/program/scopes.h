// The scopes of a file by Python's rules: what binds a name, and where a name that is read comes from.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "report/program/node.h"

namespace devsan::program {

class Definitions;

enum class ScopeKind : std::uint8_t { Module, Class, Function, Lambda, Comprehension, TypeParameters };

enum class ParameterKind : std::uint8_t { PositionalOnly, Positional, Arguments, KeywordOnly, Keywords };

struct Parameter {
  ParameterKind kind = ParameterKind::Positional;
  std::string_view name;
  Node node;           // its name
  Node default_value;  // none without a default
  Node annotation;
};

struct Scope {
  std::uint32_t id = 0;
  ScopeKind kind = ScopeKind::Module;
  Node node;  // the module, definition, lambda or comprehension that makes it
  const Scope* parent = nullptr;
  std::vector<Parameter> parameters;
  std::set<std::string_view> names;  // that are local to it
  std::set<std::string_view> globals;
  std::set<std::string_view> nonlocals;

  bool is_function() const { return kind == ScopeKind::Function || kind == ScopeKind::Lambda; }
  // Its code runs where it stands, and not when somebody calls it.
  bool runs_in_place() const {
    return kind == ScopeKind::Class || kind == ScopeKind::Comprehension || kind == ScopeKind::TypeParameters;
  }
  const Parameter* parameter(std::string_view name) const;
};

class Scopes {
 public:
  explicit Scopes(const SourceFile& file);
  Scopes(const Scopes&) = delete;
  Scopes& operator=(const Scopes&) = delete;

  const Scope& module() const { return all_.begin()->second; }
  // In the order of the text.
  const std::map<std::uint32_t, Scope>& all() const { return all_; }
  // In which the node is evaluated: defaults, decorators and annotations outside of their function, the first iterable
  // of a comprehension outside of it. The names of parameters are in their function.
  const Scope& of(Node node) const { return all_.at(scope_of_node_[node.index()]); }
  // What a definition, lambda, comprehension or the module makes; null for other nodes.
  const Scope* made_by(Node node) const;
  // The scope that binds the name as it is seen from `from`; null for a builtin, and for what only `import *` may bind.
  const Scope* binding(std::string_view name, const Scope& from) const;
  // "Model.forward.<locals>.<lambda>", as CPython calls it; "<module>".
  std::string qualified_name(const Scope& scope) const;

 private:
  friend class Definitions;

  void visit(Node node, std::uint32_t scope);
  void open(ScopeKind kind, Node node, std::uint32_t parent);
  void enter_function(Node node, std::uint32_t outer);
  void enter_class(Node node, std::uint32_t outer);
  void enter_comprehension(Node node, std::uint32_t outer);
  std::uint32_t enter_type_parameters(Node node, std::uint32_t outer);
  void read_parameters(Node parameters, Scope& scope);
  void declare(Node statement);
  Scope& edit(const Scope& scope) { return all_.at(scope.id); }

  const SourceFile& file_;
  std::map<std::uint32_t, Scope> all_;  // by the index of the node; type parameters by that of their own
  std::vector<std::uint32_t> scope_of_node_;
};

}  // namespace devsan::program
