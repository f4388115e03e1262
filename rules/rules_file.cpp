#include "rules/rules_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <toml.hpp>

#include "doctor/near_miss.h"
#include "trace/compiled_rules.h"

namespace devsan::rules {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxComplaints = 20;
constexpr std::size_t kMaxIncludes = 32;

bool begins_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
}

// An escape in a string of TOML: its characters, and the bytes that it stands for.
struct Escape {
  std::size_t characters = 2;
  std::size_t bytes = 1;
};

Escape escape_at(std::string_view text) {
  const char kind = text.size() > 1 ? text[1] : '\0';
  if (kind != 'u' && kind != 'U') return {};
  const std::size_t digits = kind == 'u' ? 4 : 8;
  const std::string hex(text.substr(2, digits));
  const unsigned long point = std::strtoul(hex.c_str(), nullptr, 16);
  return {2 + digits, point < 0x80 ? 1u : (point < 0x800 ? 2u : (point < 0x10000 ? 3u : 4u))};
}

// How many characters of a string in a file stand for so many bytes of what it says.
std::size_t characters_of(std::string_view text, bool has_escapes, std::size_t bytes) {
  std::size_t characters = 0;
  for (std::size_t at = 0, read = 0; at < text.size() && read < bytes;) {
    const bool escaped = has_escapes && text[at] == '\\';
    const Escape next = escaped ? escape_at(text.substr(at)) : Escape{begins_character(text[at]) ? 1u : 0u, 1};
    characters += next.characters;
    read += next.bytes;
    at += escaped ? next.characters : 1;
  }
  return characters;
}

// From the quote of a string on.
std::string_view source_of(const toml::node& node, std::string_view source) {
  const auto begin = node.source().begin;
  for (toml::source_index line = 1; line < begin.line; ++line) {
    const std::size_t end = source.find('\n');
    if (end == source.npos) return {};
    source.remove_prefix(end + 1);
  }
  std::size_t at = 0;
  for (toml::source_index column = 0; at < source.size(); ++at) {
    if (begins_character(source[at]) && ++column == begin.column) break;
  }
  return source.substr(at);
}

// The column of a byte of what a string says; of the string where it has three quotes and may be several lines.
int column_of(const toml::node& node, std::string_view source, std::size_t offset) {
  const std::string_view text = source_of(node, source);
  const int column = static_cast<int>(node.source().begin.column);
  if (text.empty() || text.starts_with("\"\"\"") || text.starts_with("'''")) return column;
  return column + 1 + static_cast<int>(characters_of(text.substr(1), text[0] == '"', offset));
}

class Reader {
 public:
  RulesFile run(const fs::path& path) {
    read(path, path.string());
    return std::move(file_);
  }

 private:
  struct Source {
    std::string name;
    std::string text;
    fs::path folder;
  };

  void complain(const Source& source, const toml::source_region& region, std::string text) {
    complain(source, static_cast<int>(region.begin.line), static_cast<int>(region.begin.column), std::move(text));
  }
  void complain(const Source& source, int line, int column, std::string text) {
    if (file_.complaints.size() < kMaxComplaints) {
      file_.complaints.push_back({source.name, line, column, std::move(text)});
    }
  }

  void read(const fs::path& path, const std::string& name) {
    Source source{name, {}, path.parent_path()};
    std::error_code error;
    const fs::path whole = fs::weakly_canonical(path, error);
    if (std::ranges::find(open_, whole) != open_.end()) return complain(source, 0, 0, "includes itself");
    if (++includes_ > kMaxIncludes) return complain(source, 0, 0, "more files are included than devsan reads");
    if (!load(path, source)) return;
    open_.push_back(whole);
    try {
      const toml::table table = toml::parse(source.text, source.name);
      take_table(source, table);
    } catch (const toml::parse_error& wrong) {
      complain(source, wrong.source(), std::string(wrong.description()));
    }
    open_.pop_back();
  }

  bool load(const fs::path& path, Source& source) {
    std::error_code error;
    if (!fs::is_regular_file(path, error)) {
      complain(source, 0, 0, error || !fs::exists(path) ? "no such file" : "is not a regular file");
      return false;
    }
    std::ifstream in(path, std::ios::binary);
    std::string text(kMaxRulesBytes + 1, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(in.gcount()));
    if (in.bad() || !in.is_open()) {
      complain(source, 0, 0, std::strerror(errno));
    } else if (text.size() > kMaxRulesBytes) {
      complain(source, 0, 0, "is larger than " + std::to_string(kMaxRulesBytes >> 10) + " KiB");
    } else {
      source.text = std::move(text);
      return true;
    }
    return false;
  }

  void take_table(const Source& source, const toml::table& table) {
    for (const auto& [key, node] : table) {
      const std::string_view name = key.str();
      if (name == "include") {
        for_each_string(source, node, [&](const toml::node& at, const std::string& text) {
          const std::size_t before = file_.complaints.size();
          read(source.folder / text, (source.folder / text).string());
          if (file_.complaints.size() > before && file_.complaints.back().line == 0) {
            file_.complaints.back() = {source.name, static_cast<int>(at.source().begin.line),
                                       static_cast<int>(at.source().begin.column),
                                       text + ": " + file_.complaints.back().text};
          }
        });
      } else if (name == "expect") {
        for_each_string(source, node,
                        [&](const toml::node& at, const std::string& text) { add_rule(source, at, text, Rule{}); });
      } else if (name == "off") {
        for_each_string(source, node,
                        [&](const toml::node& at, const std::string& text) { take_off(source, at, text); });
      } else if (name == "rule") {
        take_rules(source, node);
      } else {
        unknown(source, key, {"include", "expect", "off", "rule"});
      }
    }
  }

  void unknown(const Source& source, const toml::key& key, const std::vector<std::string>& known) {
    std::string list;
    for (const std::string& word : known) list += (list.empty() ? "" : ", ") + word;
    complain(source, key.source(),
             "unknown key '" + std::string(key.str().substr(0, 60)) + "'" + doctor::did_you_mean(key.str(), known) +
                 "; known keys: " + list);
  }

  template <class Visit>
  void for_each_string(const Source& source, const toml::node& node, Visit visit) {
    if (const auto text = node.value<std::string>(); text && node.is_string()) return visit(node, *text);
    const toml::array* all = node.as_array();
    if (all == nullptr) return complain(source, node.source(), "a text, or a list of texts, is expected here");
    for (const toml::node& one : *all) {
      if (one.is_string()) {
        visit(one, *one.value<std::string>());
      } else {
        complain(source, one.source(), "a text is expected here");
      }
    }
  }

  void take_off(const Source& source, const toml::node& node, const std::string& name) {
    const std::vector<std::string> known = expectations();
    if (std::ranges::find(known, name) == known.end() && name != "all") {
      return complain(
          source, node.source(),
          "no built-in expectation has the name '" + name.substr(0, 60) + "'" + doctor::did_you_mean(name, known));
    }
    file_.off.push_back(name);
  }

  void take_rules(const Source& source, const toml::node& node) {
    const toml::array* all = node.as_array();
    if (all == nullptr) {
      return complain(source, node.source(), "rules are written as [[rule]], with two brackets on each side");
    }
    for (const toml::node& one : *all) {
      if (const toml::table* table = one.as_table()) {
        take_rule(source, *table);
      } else {
        complain(source, one.source(), "a rule is a table: write [[rule]]");
      }
    }
  }

  void take_rule(const Source& source, const toml::table& table) {
    Rule rule;
    const toml::node* sentence = nullptr;
    for (const auto& [key, node] : table) {
      const std::string_view name = key.str();
      const auto span = std::ranges::find(kSpanKeys, name, &SpanKey::name);
      if (span != kSpanKeys.end()) {
        take_spans(source, node, rule.*span->member);
        if ((rule.*span->member).size() > kMaxSpans) {
          complain(source, node.source(), "more than " + std::to_string(kMaxSpans) + " numbers and ranges");
        }
      } else if (name == "name" && node.is_string()) {
        rule.name = *node.value<std::string>();
      } else if (name == "expect") {
        sentence = &node;
      } else if (name == "name") {
        complain(source, node.source(), "a text is expected here");
      } else {
        unknown(source, key, {"name", "expect", "ranks", "local_ranks", "world_size", "steps"});
      }
    }
    if (sentence == nullptr) return complain(source, table.source(), "this rule expects nothing: it has no 'expect'");
    for_each_string(source, *sentence,
                    [&](const toml::node& at, const std::string& text) { add_rule(source, at, text, rule); });
  }

  // 3, "0-3", "10-", [0, "2-3"]
  void take_spans(const Source& source, const toml::node& node, Spans& spans) {
    if (const toml::array* all = node.as_array()) {
      for (const toml::node& one : *all) {
        if (one.is_array()) return complain(source, one.source(), "a number or a range is expected here");
        take_spans(source, one, spans);
      }
      return;
    }
    std::optional<Spans> found;
    if (const auto number = node.value_exact<std::int64_t>(); number && *number >= 0) {
      found = Spans{{*number, *number}};
    } else if (node.is_string()) {
      found = parse_spans(*node.value<std::string>());
    }
    if (!found) return complain(source, node.source(), "a number, or a range such as \"0-3\" or \"10-\", is expected");
    spans.insert(spans.end(), found->begin(), found->end());
  }

  void add_rule(const Source& source, const toml::node& at, const std::string& sentence, Rule rule) {
    rule.file = source.name;
    rule.line = static_cast<int>(at.source().begin.line);
    if (const auto error = parse_sentence(sentence, rule)) {
      return complain(source, rule.line, column_of(at, source.text, error->at), error->text);
    }
    if (rule.about == About::activations && !rule.steps.empty()) {
      return complain(source, at.source(), "no step is known of activations: a rule about them has no 'steps'");
    }
    if (file_.rules.size() == kMaxRules) {
      return complain(source, at.source(), "more than " + std::to_string(kMaxRules) + " rules");
    }
    file_.rules.push_back(std::move(rule));
  }

  RulesFile file_;
  std::vector<fs::path> open_;
  std::size_t includes_ = 0;
};

}  // namespace

std::string Complaint::sentence() const {
  const std::string place = line > 0 ? ":" + std::to_string(line) + ":" + std::to_string(column) : std::string();
  return file + place + ": " + text;
}

RulesFile read_rules(const fs::path& path) {
  return Reader().run(path);
}

std::vector<std::string> expectations() {
  return {
#define DEVSAN_EXPECTATION(name, meaning) name,
#include "rules/expectations.def"
#undef DEVSAN_EXPECTATION
  };
}

std::string compiled(const RulesFile& file, const fs::path& path) {
  std::string text = std::string(trace::kCompiledRulesMark) + path.string() + '\n';
  for (const std::string& name : file.off) text += "0\t" + compiled_off(name) + '\n';
  for (const Rule& rule : file.rules) text += std::to_string(rule.line) + '\t' + compiled_line(rule) + '\n';
  return text;
}

}  // namespace devsan::rules
