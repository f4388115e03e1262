// What one file calls, defines, stores and fills, by name: the slice asks these over and over.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "report/program/definitions.h"
#include "report/program/node.h"
#include "report/program/source_file.h"

namespace devsan::report::slice {

using Nodes = std::vector<program::Node>;
using Definitions = std::vector<const program::Definition*>;

class FileIndex {
 public:
  explicit FileIndex(const program::SourceFile& file);
  FileIndex(const FileIndex&) = delete;
  FileIndex& operator=(const FileIndex&) = delete;

  const program::SourceFile& file() const { return file_; }
  // By the last name of what is called: "to" of `x.to(d)`.
  const Nodes& calls(std::string_view name) const { return at(calls_, name); }
  const Nodes& all_calls() const { return all_calls_; }
  const Nodes& functions(std::string_view name) const { return at(functions_, name); }
  const Nodes& classes(std::string_view name) const { return at(classes_, name); }
  const Nodes& all_classes() const { return all_classes_; }
  const Nodes& with_statements() const { return withs_; }
  // Calls that give an object a member: register_buffer(…), setattr(…).
  const Nodes& registrations() const { return registrations_; }
  // Expressions that are the name, or end in `.name`.
  const Nodes& mentions(std::string_view name) const { return at(mentions_, name); }
  // To an attribute of that name, or to the name in a class's body.
  const Definitions& stores(std::string_view name) const { return at(stores_, name); }
  // `x.name[k] = v`, `name[k] = v`, `name += v`
  const Definitions& entries(std::string_view name) const { return at(entries_, name); }
  // `x.name.append(v)`, `name.setdefault(k, []).append(v)`
  const Nodes& fills(std::string_view name) const { return at(fills_, name); }

 private:
  template <class Value>
  using ByName = std::map<std::string, std::vector<Value>, std::less<>>;

  template <class Value>
  static const std::vector<Value>& at(const ByName<Value>& table, std::string_view name) {
    static const std::vector<Value> kNone;
    const auto found = table.find(name);
    return found == table.end() ? kNone : found->second;
  }
  void add_node(program::Node node);
  void add_call(program::Node call);
  void add_definition(const program::Definition& definition);

  const program::SourceFile& file_;
  ByName<program::Node> calls_, functions_, classes_, mentions_, fills_;
  ByName<const program::Definition*> stores_, entries_;
  Nodes all_calls_, all_classes_, withs_, registrations_;
};

// The name that an expression ends in: `weight` of `a.b.weight`, `f` of `f`; empty for others.
std::string_view last_name(program::Node expression);
// Of what a call calls.
std::string_view called_name(program::Node call);
// What a store to a subscript, an augmented assignment or a call like append() fills: the expression before calls and
// subscripts.
program::Node container_of(program::Node target_or_call);
// The function, lambda or module whose code the node is; comprehensions belong to the one around them.
program::Node body_of(program::Node node);
// "<module>", "<lambda>", or the definition's name.
std::string_view name_of_function(program::Node function);

}  // namespace devsan::report::slice
