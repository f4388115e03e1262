// From text to nodes. The tree of tree-sitter is copied into an array, in which relatives are found without a search,
// and then freed.
#include <tree_sitter/api.h>

#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "report/program/source_file.h"

extern "C" const TSLanguage* tree_sitter_python();

namespace devsan::program {
namespace {

// The parser reports once in a hundred operations. Source takes a few operations a byte; what takes many more is no
// source, and is given up.
constexpr std::uint64_t kOperationsPerReport = 100;
constexpr std::uint64_t kReportsPerByte = 4;
constexpr std::uint64_t kReportsAnyway = 10000;
constexpr std::size_t kLongestText = std::size_t{64} << 20;

struct Effort {
  std::uint64_t reports = 0;
  std::uint64_t most = 0;
};

bool too_much(TSParseState* state) {
  auto& effort = *static_cast<Effort*>(state->payload);
  return ++effort.reports > effort.most;
}

struct Input {
  const std::string& text;
};

const char* read(void* payload, std::uint32_t byte, TSPoint, std::uint32_t* length) {
  const std::string& text = static_cast<Input*>(payload)->text;
  *length = byte < text.size() ? static_cast<std::uint32_t>(text.size() - byte) : 0;
  return *length > 0 ? text.data() + byte : "";
}

// For Python, a carriage return alone breaks a line. The grammar knows line feeds only.
std::string with_line_feeds(std::string text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\r' && (at + 1 == text.size() || text[at + 1] != '\n')) text[at] = '\n';
  }
  return text;
}

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

}  // namespace

class TreeReader {
 public:
  explicit TreeReader(SourceFile& file) : file_(file) {}

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
        file_.nodes_[open_.back()].subtree_end = last() + 1;
        open_.pop_back();
      }
      if (more) add(cursor);
    }
    ts_tree_cursor_delete(&cursor);
  }

 private:
  std::uint32_t last() const { return static_cast<std::uint32_t>(file_.nodes_.size() - 1); }

  void add(const TSTreeCursor& cursor) {
    const TSNode node = ts_tree_cursor_current_node(&cursor);
    const TSSymbol symbol = ts_node_symbol(node);
    SourceFile::NodeData data{};
    data.begin = ts_node_start_byte(node);
    data.end = ts_node_end_byte(node);
    data.parent = open_.empty() ? Node::kNone : open_.back();
    data.subtree_end = static_cast<std::uint32_t>(file_.nodes_.size() + 1);
    const bool error = ts_node_is_error(node);
    data.kind = error ? Kind::Error : symbols().kinds[symbol];
    data.named = error || symbols().named[symbol];
    data.field = symbols().fields[ts_tree_cursor_current_field_id(&cursor)];
    data.has_error = ts_node_has_error(node);
    file_.nodes_.push_back(data);
  }

  SourceFile& file_;
  std::vector<std::uint32_t> open_;
};

void SourceFile::parse() {
  const std::string text = with_line_feeds(text_.size() > kLongestText ? std::string() : text_);
  const std::unique_ptr<TSParser, decltype(&ts_parser_delete)> parser(ts_parser_new(), ts_parser_delete);
  ts_parser_set_language(parser.get(), tree_sitter_python());
  Input input{text};
  Effort effort{0, kReportsAnyway + kReportsPerByte * text.size()};
  const TSInput source{&input, read, TSInputEncodingUTF8, nullptr};
  const TSParseOptions options{&effort, too_much};
  const std::unique_ptr<TSTree, decltype(&ts_tree_delete)> tree(
      ts_parser_parse_with_options(parser.get(), nullptr, source, options), ts_tree_delete);
  parse_steps_ = effort.reports * kOperationsPerReport;
  if (tree) TreeReader(*this).read(tree.get());
  // Text that was given up is one error.
  if (nodes_.empty() || text.size() != text_.size()) {
    nodes_.assign(1,
                  {0, static_cast<std::uint32_t>(text_.size()), Node::kNone, 1, Kind::Module, Field::None, true, true});
  }
}

}  // namespace devsan::program
