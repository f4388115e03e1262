#include "report/program/node.h"

#include <array>

#include "report/program/source_file.h"

namespace devsan::program {

std::string_view to_string(Kind kind) {
  static constexpr std::string_view kNames[] = {
#define DEVSAN_NODE_KIND(kind, name) name,
#include "report/program/node_kinds.def"
#undef DEVSAN_NODE_KIND
  };
  return kNames[static_cast<std::size_t>(kind)];
}

Kind Node::kind() const {
  return file_ == nullptr ? Kind::Token : file_->nodes_[index_].kind;
}

Field Node::role() const {
  return file_ == nullptr ? Field::None : file_->nodes_[index_].field;
}

std::uint32_t Node::begin_byte() const {
  return file_ == nullptr ? 0 : file_->nodes_[index_].begin;
}

std::uint32_t Node::end_byte() const {
  return file_ == nullptr ? 0 : file_->nodes_[index_].end;
}

bool Node::has_error() const {
  return file_ != nullptr && file_->nodes_[index_].has_error;
}

std::uint32_t Node::subtree_end() const {
  return file_ == nullptr ? 0 : file_->nodes_[index_].subtree_end;
}

std::string_view Node::text() const {
  return file_ == nullptr ? std::string_view() : file_->text().substr(begin_byte(), end_byte() - begin_byte());
}

Range Node::range() const {
  if (file_ == nullptr) return {};
  Range range;
  range.line = file_->line_of(begin_byte());
  range.end_line = file_->line_of(end_byte());
  range.column = static_cast<int>(begin_byte() - file_->line_start(range.line));
  range.end_column = static_cast<int>(end_byte() - file_->line_start(range.end_line));
  return range;
}

Node Node::parent() const {
  return file_ == nullptr ? Node() : Node(file_, file_->nodes_[index_].parent);
}

Node Node::first_child() const {
  if (file_ == nullptr || index_ + 1 >= subtree_end()) return {};
  return {file_, index_ + 1};
}

Node Node::next_sibling() const {
  if (file_ == nullptr || file_->nodes_[index_].parent == kNone) return {};
  const std::uint32_t next = subtree_end();
  return next < parent().subtree_end() ? Node(file_, next) : Node();
}

Node Node::previous_sibling() const {
  Node before;
  for (Node at = parent().first_child(); at && at != *this; at = at.next_sibling()) before = at;
  return before;
}

Node Node::next_named() const {
  Node at = next_sibling();
  while (at && (!file_->nodes_[at.index_].named || at.is(Kind::Comment))) at = at.next_sibling();
  return at;
}

std::vector<Node> Node::children() const {
  std::vector<Node> found;
  for (Node at = first_child(); at; at = at.next_sibling()) {
    if (file_->nodes_[at.index_].named && !at.is(Kind::Comment) && !at.is(Kind::LineContinuation)) found.push_back(at);
  }
  return found;
}

std::vector<Node> Node::children(Field field) const {
  std::vector<Node> found;
  for (const Node at : children()) {
    if (at.role() == field) found.push_back(at);
  }
  return found;
}

Node Node::child(Field field) const {
  for (Node at = first_child(); at; at = at.next_sibling()) {
    if (at.role() == field && !at.is(Kind::Comment)) return at;
  }
  return {};
}

Node Node::only_child() const {
  const std::vector<Node> all = children();
  return all.size() == 1 ? all.front() : Node();
}

Node Node::enclosing(Kind kind) const {
  Node at = *this;
  while (at && !at.is(kind)) at = at.parent();
  return at;
}

}  // namespace devsan::program
