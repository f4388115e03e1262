// From text to nodes. The tree of tree-sitter is copied into an array, in which relatives are found without a search,
// and then freed.
#include <tree_sitter/api.h>

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>

#include "report/program/source_file.h"
#include "report/program/tree_repair.h"

extern "C" const TSLanguage* tree_sitter_python();

namespace devsan::program {
namespace {

// Source takes two operations of the parser for a byte, and is read a few times: a token is looked for behind comments
// and blank lines. A file of which most lines are one comment, or that is no source, can take many
// more, and is given up: what these limits allow takes seconds for a megabyte.
constexpr std::uint64_t kOperationsPerReport = 100;
constexpr std::uint64_t kOperationsPerByte = 40;
constexpr std::uint64_t kReadingsPerByte = 100;
constexpr std::uint64_t kOperationsAnyway = 1'000'000;
constexpr std::uint64_t kBytesReadAnyway = std::uint64_t{64} << 20;
constexpr std::uint32_t kBytesAtOnce = 1024;
constexpr std::size_t kLongestText = std::size_t{64} << 20;

class Input {
 public:
  explicit Input(const std::string& text)
      : text_(text),
        most_operations_(kOperationsAnyway + kOperationsPerByte * text.size()),
        most_bytes_(kBytesReadAnyway + kReadingsPerByte * text.size()) {}

  TSInput source() { return {this, read, TSInputEncodingUTF8, nullptr}; }
  TSParseOptions options() { return {this, too_much}; }
  std::uint64_t operations() const { return operations_; }
  std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  static const char* read(void* payload, std::uint32_t byte, TSPoint, std::uint32_t* length) {
    auto& input = *static_cast<Input*>(payload);
    const auto size = static_cast<std::uint32_t>(input.text_.size());
    *length = byte < size ? std::min(size - byte, kBytesAtOnce) : 0;
    input.bytes_read_ += *length;
    return *length > 0 ? input.text_.data() + byte : "";
  }

  static bool too_much(TSParseState* state) {
    auto& input = *static_cast<Input*>(state->payload);
    input.operations_ += kOperationsPerReport;
    return input.operations_ > input.most_operations_ || input.bytes_read_ > input.most_bytes_;
  }

  const std::string& text_;
  std::uint64_t most_operations_;
  std::uint64_t most_bytes_;
  std::uint64_t operations_ = 0;
  std::uint64_t bytes_read_ = 0;
};

struct Symbols {
  std::vector<Kind> kinds;
  std::vector<bool> named;
  std::vector<Field> fields;
};

Symbols read_symbols() {
  const std::unordered_map<std::string_view, Kind> kinds = {
#define DEVSAN_NODE_KIND(kind, name) {name, Kind::kind},
#include "report/program/node_kinds.def"
#undef DEVSAN_NODE_KIND
  };
  const std::unordered_map<std::string_view, Field> fields = {
#define DEVSAN_NODE_FIELD(field, name) {name, Field::field},
#include "report/program/node_fields.def"
#undef DEVSAN_NODE_FIELD
  };
  Symbols symbols;
  const TSLanguage* language = tree_sitter_python();
  for (std::uint32_t at = 0; at < ts_language_symbol_count(language); ++at) {
    const auto symbol = static_cast<TSSymbol>(at);
    const bool named = ts_language_symbol_type(language, symbol) == TSSymbolTypeRegular;
    const auto found = kinds.find(ts_language_symbol_name(language, symbol));
    symbols.named.push_back(named && found != kinds.end());
    symbols.kinds.push_back(symbols.named.back() ? found->second : Kind::Token);
  }
  symbols.fields.push_back(Field::None);
  for (std::uint32_t at = 1; at <= ts_language_field_count(language); ++at) {
    const auto found = fields.find(ts_language_field_name_for_id(language, static_cast<TSFieldId>(at)));
    symbols.fields.push_back(found == fields.end() ? Field::None : found->second);
  }
  return symbols;
}

const Symbols& symbols() {
  static const Symbols all = read_symbols();
  return all;
}

class TreeReader {
 public:
  explicit TreeReader(std::vector<NodeData>& nodes) : nodes_(nodes) {}

  void read(TSTree* tree) {
    TSTreeCursor cursor = ts_tree_cursor_new(ts_tree_root_node(tree));
    add(cursor);
    for (bool more = true; more;) {
      if (ts_tree_cursor_goto_first_child(&cursor)) {
        open_.push_back(last());
        add(cursor);
        continue;
      }
      while (!ts_tree_cursor_goto_next_sibling(&cursor)) {
        if (!ts_tree_cursor_goto_parent(&cursor)) {
          more = false;
          break;
        }
        nodes_[open_.back()].subtree_end = last() + 1;
        open_.pop_back();
      }
      if (more) add(cursor);
    }
    ts_tree_cursor_delete(&cursor);
  }

 private:
  std::uint32_t last() const { return static_cast<std::uint32_t>(nodes_.size() - 1); }

  void add(const TSTreeCursor& cursor) {
    const TSNode node = ts_tree_cursor_current_node(&cursor);
    const TSSymbol symbol = ts_node_symbol(node);
    NodeData data{};
    data.begin = ts_node_start_byte(node);
    data.end = ts_node_end_byte(node);
    data.parent = open_.empty() ? Node::kNone : open_.back();
    data.subtree_end = static_cast<std::uint32_t>(nodes_.size() + 1);
    const bool error = ts_node_is_error(node);
    data.kind = error ? Kind::Error : symbols().kinds[symbol];
    data.named = error || symbols().named[symbol];
    data.field = symbols().fields[ts_tree_cursor_current_field_id(&cursor)];
    data.has_error = ts_node_has_error(node);
    nodes_.push_back(data);
  }

  std::vector<NodeData>& nodes_;
  std::vector<std::uint32_t> open_;
};

}  // namespace

void SourceFile::parse() {
  const std::string text = as_grammar_reads(text_.size() > kLongestText ? std::string() : text_);
  const std::unique_ptr<TSParser, decltype(&ts_parser_delete)> parser(ts_parser_new(), ts_parser_delete);
  ts_parser_set_language(parser.get(), tree_sitter_python());
  Input input(text);
  const std::unique_ptr<TSTree, decltype(&ts_tree_delete)> tree(
      ts_parser_parse_with_options(parser.get(), nullptr, input.source(), input.options()), ts_tree_delete);
  parse_operations_ = input.operations();
  bytes_read_ = input.bytes_read();
  if (tree) TreeReader(nodes_).read(tree.get());
  SplatRepair(nodes_).repair();
  // Text that was given up is one error.
  if (nodes_.empty() || text.size() != text_.size()) {
    nodes_.assign(1,
                  {0, static_cast<std::uint32_t>(text_.size()), Node::kNone, 1, Kind::Module, Field::None, true, true});
  }
}

}  // namespace devsan::program
