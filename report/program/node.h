// A node of a file's parse tree. A small value: the file has to outlive it.
//
// Kinds and fields are those of tree-sitter-python's grammar, so `a = b` is an Assignment with the fields Left and
// Right. Comments and tokens (operators, keywords, brackets) are nodes too; `children()` passes over both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace devsan::program {

class SourceFile;
class Subtree;

enum class Kind : std::uint8_t {
#define DEVSAN_NODE_KIND(kind, name) kind,
#include "report/program/node_kinds.def"
#undef DEVSAN_NODE_KIND
};

enum class Field : std::uint8_t {
  None,
#define DEVSAN_NODE_FIELD(field, name) field,
#include "report/program/node_fields.def"
#undef DEVSAN_NODE_FIELD
};

// The name in the grammar: "binary_operator".
std::string_view to_string(Kind kind);

// A position as CPython gives it: lines from 1, columns in bytes of UTF-8 from 0. An unknown number is -1.
struct Range {
  int line = -1;
  int end_line = -1;
  int column = -1;
  int end_column = -1;
  bool operator==(const Range&) const = default;
};

class Node {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;

  Node() = default;
  Node(const SourceFile* file, std::uint32_t index) : file_(index == kNone ? nullptr : file), index_(index) {}

  explicit operator bool() const { return file_ != nullptr; }
  bool operator==(const Node&) const = default;
  // The order of the text; a node comes before what it contains.
  bool operator<(const Node& other) const { return file_ != other.file_ ? file_ < other.file_ : index_ < other.index_; }

  // Of no node: Token, empty text, no relatives.
  Kind kind() const;
  bool is(Kind kind) const { return file_ != nullptr && this->kind() == kind; }
  Field role() const;  // the field that it is in its parent
  std::string_view text() const;
  std::uint32_t begin_byte() const;  // in the text of the file
  std::uint32_t end_byte() const;
  Range range() const;
  int line() const { return range().line; }
  // Text that the grammar does not know lies in it, or a token is missing.
  bool has_error() const;

  Node parent() const;
  Node first_child() const;  // of all, with tokens and comments
  Node next_sibling() const;
  Node previous_sibling() const;
  // Without tokens and comments.
  std::vector<Node> children() const;
  std::vector<Node> children(Field field) const;
  Node child(Field field) const;  // the first one
  Node only_child() const;        // none where children() are none or several
  Node next_named() const;
  // `other` is this node or lies within it.
  bool contains(const Node& other) const {
    return file_ != nullptr && file_ == other.file_ && index_ <= other.index_ && other.index_ < subtree_end();
  }
  // This node and all in it, with tokens and comments, in the order of the text. Empty of no node.
  Subtree subtree() const;
  // The nearest node of that kind, this one included.
  Node enclosing(Kind kind) const;

  const SourceFile& file() const { return *file_; }
  std::uint32_t index() const { return index_; }
  std::uint32_t subtree_end() const;  // the index behind its last descendant

 private:
  const SourceFile* file_ = nullptr;
  std::uint32_t index_ = kNone;
};

class Subtree {
 public:
  class Iterator {
   public:
    using value_type = Node;
    using difference_type = std::ptrdiff_t;

    Iterator() = default;
    Iterator(const SourceFile* file, std::uint32_t index) : file_(file), index_(index) {}
    Node operator*() const { return {file_, index_}; }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++index_;
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const SourceFile* file_ = nullptr;
    std::uint32_t index_ = 0;
  };

  Subtree(const SourceFile* file, std::uint32_t begin, std::uint32_t end) : file_(file), begin_(begin), end_(end) {}
  Iterator begin() const { return {file_, begin_}; }
  Iterator end() const { return {file_, end_}; }

 private:
  const SourceFile* file_;
  std::uint32_t begin_, end_;
};

inline Subtree Node::subtree() const {
  return file_ == nullptr ? Subtree(nullptr, 0, 0) : Subtree(file_, index_, subtree_end());
}

}  // namespace devsan::program
