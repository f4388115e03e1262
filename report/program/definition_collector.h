// Finds what gives variables their values, in one pass over the nodes.
#pragma once

#include <vector>

#include "report/program/definitions.h"

namespace devsan::program {

class DefinitionCollector {
 public:
  DefinitionCollector(const SourceFile& file, const Scopes& scopes) : file_(file), scopes_(scopes) {}
  std::vector<Definition> collect();

 private:
  void visit(Node node);
  void assignment(Node node);
  void with_item(Node node);
  void except_clause(Node node);
  void deletion(Node node);
  void parameters(const Scope& scope);
  void import(Node node);
  void import_from(Node node);
  void imported(Node item, const std::string& module, Node statement);
  void type_parameters(Node node);
  void type_alias(Node node);
  void call(Node node);
  void match_pattern(Node node);
  // What is left of `=`, behind `for`, `as` or `del`, taken apart.
  void targets(Node target, const Definition& pattern);
  void unpacked(const std::vector<Node>& elements, const Definition& pattern);
  void add(Node target, Definition definition);

  const SourceFile& file_;
  const Scopes& scopes_;
  std::vector<Definition> found_;
};

}  // namespace devsan::program
