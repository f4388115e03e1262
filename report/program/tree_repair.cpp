#include "report/program/tree_repair.h"

#include <algorithm>
#include <cctype>

namespace devsan::program {
namespace {

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Nodes that may begin with an operand; a starred one is none.
bool begins_with_operand(Kind kind) {
  switch (kind) {
    case Kind::Attribute:
    case Kind::Call:
    case Kind::Subscript:
    case Kind::BinaryOperator:
    case Kind::BooleanOperator:
    case Kind::ComparisonOperator:
    case Kind::ConditionalExpression:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string as_grammar_reads(std::string text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\r' && (at + 1 == text.size() || text[at + 1] != '\n')) text[at] = '\n';
  }
  for (std::size_t at = text.find("type"); at != std::string::npos; at = text.find("type", at + 4)) {
    const std::size_t next = text.find_first_not_of(" \t", at + 4);
    const bool whole = at == 0 || !is_name_character(text[at - 1]);
    if (whole && next != std::string::npos && text[next] == '(') text[at + 3] = '_';
  }
  return text;
}

bool SplatRepair::is_left_end(std::uint32_t node) const {
  const std::uint32_t parent = nodes_[node].parent;
  return parent != Node::kNone && parent + 1 == node && begins_with_operand(nodes_[parent].kind);
}

void SplatRepair::repair() {
  for (std::uint32_t at = 1; at < nodes_.size(); ++at) {
    const bool starred = nodes_[at].kind == Kind::ListSplat && nodes_[at].subtree_end > at + 2;
    if (starred && is_left_end(at)) lift(at);
  }
}

// The nodes of `top … splat * inner` become `splat * top … inner`.
void SplatRepair::lift(std::uint32_t splat) {
  std::uint32_t top = splat;
  while (is_left_end(top)) --top;
  const std::uint32_t inner = splat + 2;
  const NodeData outermost = nodes_[top];
  const Field inner_field = nodes_[splat].field;
  for (std::uint32_t at = inner; at < outermost.subtree_end; ++at) {
    std::uint32_t& parent = nodes_[at].parent;
    if (parent == splat) {
      nodes_[at].field = nodes_[at].named ? inner_field : nodes_[at].field;
      parent = inner - 1;
    } else if (parent >= top && parent < splat) {
      parent += 2;
    }
  }
  for (std::uint32_t at = top; at < splat; ++at) {
    nodes_[at].parent = at == top ? top : at + 1;
    nodes_[at].begin = nodes_[inner].begin;
  }
  nodes_[top].field = Field::None;
  nodes_[splat].parent = outermost.parent;
  nodes_[splat].field = outermost.field;
  nodes_[splat].end = outermost.end;
  nodes_[splat].subtree_end = outermost.subtree_end;
  nodes_[splat].has_error = outermost.has_error;
  nodes_[splat + 1].parent = top;
  nodes_[splat + 1].subtree_end = top + 2;
  const auto first = nodes_.begin() + top;
  std::rotate(first, nodes_.begin() + splat, nodes_.begin() + inner);
}

}  // namespace devsan::program
