// One file of Python source as a parse tree. Text with errors is tolerated: the rest has its nodes. The text has to
// be UTF-8; CPython's columns count the bytes of UTF-8 whatever the encoding of the file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "report/program/node.h"

namespace devsan::program {

class Scopes;
class Definitions;
class Flow;

// What a node is, in the file's array of nodes.
struct NodeData {
  std::uint32_t begin, end;
  std::uint32_t parent;
  std::uint32_t subtree_end;
  Kind kind;
  Field field;
  bool named;
  bool has_error;
};

class SourceFile {
 public:
  SourceFile(std::string path, std::string text);
  ~SourceFile();
  SourceFile(const SourceFile&) = delete;
  SourceFile& operator=(const SourceFile&) = delete;

  const std::string& path() const { return path_; }
  std::string_view text() const { return text_; }
  Node root() const { return {this, 0}; }
  std::size_t size() const { return nodes_.size(); }
  Node node(std::uint32_t index) const { return {this, index}; }
  bool has_errors() const { return root().has_error(); }

  // Lines from 1. A line's text has no line break.
  int line_count() const { return static_cast<int>(line_starts_.size()); }
  int line_of(std::uint32_t byte) const;
  std::uint32_t line_start(int line) const;  // the end of the text for a line that there is not
  std::string_view line_text(int line) const;
  std::uint32_t byte_of(int line, int column) const;

  // Made when they are first asked for. A file is therefore used by one thread at a time.
  const Scopes& scopes() const;
  const Definitions& definitions() const;
  const Flow& flow() const;

  // What parsing took. Both grow with the size of the text, and are bounded by it.
  std::uint64_t parse_operations() const { return parse_operations_; }
  std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  friend class Node;
  struct Analyses;

  Analyses& analyses() const;
  void index_lines();
  void parse();

  std::string path_;
  std::string text_;
  std::vector<NodeData> nodes_;  // a node before its descendants, in the order of the text
  std::vector<std::uint32_t> line_starts_;
  std::uint64_t parse_operations_ = 0;
  std::uint64_t bytes_read_ = 0;
  mutable std::unique_ptr<Analyses> analyses_;
};

}  // namespace devsan::program
