// Real source: of the standard library and of torch, or of the folders that DEVSAN_SOURCES names, separated by colons.
// One file in 40; all of them with DEVSAN_ALL_SOURCES=1, which also prints what there was.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>

#include "parsed.h"

namespace devsan::program {
namespace {

struct Expression {
  std::string kind;
  Range range;
};

struct ScopeFact {
  std::string kind;
  int line = 0;
  std::string name;
  std::string names;
};

struct Facts {
  std::string path;
  bool compiles = false;
  std::vector<Expression> expressions;
  std::vector<ScopeFact> scopes;
};

bool all_sources() {
  return std::getenv("DEVSAN_ALL_SOURCES") != nullptr;
}

std::string in_quotes(const std::string& word) {
  return "'" + word + "'";
}

std::string command() {
  const std::string root = DEVSAN_SOURCE_DIR;
  const char* named = std::getenv("DEVSAN_TEST_PYTHON");
  const std::string own = root + "/.venv/bin/python";
  std::string python = named != nullptr ? named : std::filesystem::exists(own) ? own : "python3";
  std::string words = in_quotes(python) + " " + in_quotes(root + "/tests/unit/report/program/python_facts.py");
  words += all_sources() ? " 1" : " 40";
  std::istringstream folders(std::getenv("DEVSAN_SOURCES") != nullptr ? std::getenv("DEVSAN_SOURCES") : "");
  for (std::string folder; std::getline(folders, folder, ':');) words += " " + in_quotes(folder);
  return words;
}

void add_line(std::vector<Facts>& facts, const std::string& line) {
  if (line.size() < 3) return;
  std::istringstream fields(line.substr(2));
  if (line[0] == 'F' || line[0] == 'E') {
    facts.push_back({line.substr(2), line[0] == 'F', {}, {}});
  } else if (line[0] == 'N') {
    Expression each;
    fields >> each.kind >> each.range.line >> each.range.end_line >> each.range.column >> each.range.end_column;
    facts.back().expressions.push_back(each);
  } else if (line[0] == 'S') {
    ScopeFact each;
    fields >> each.kind >> each.line >> each.name >> each.names;
    facts.back().scopes.push_back(each);
  }
}

const std::vector<Facts>& corpus() {
  static const std::vector<Facts> all = [] {
    std::vector<Facts> facts;
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command().c_str(), "r"), pclose);
    std::string line;
    for (int c = std::fgetc(pipe.get()); c != EOF; c = std::fgetc(pipe.get())) {
      if (c != '\n') {
        line.push_back(static_cast<char>(c));
        continue;
      }
      add_line(facts, line);
      line.clear();
    }
    return facts;
  }();
  return all;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Shows some of them, and counts all.
class Mismatches {
 public:
  void add(const std::string& text) {
    if (count_++ < 20) shown_ += "\n" + text;
  }
  std::size_t count() const { return count_; }
  const std::string& shown() const { return shown_; }

 private:
  std::size_t count_ = 0;
  std::string shown_;
};

std::string written(const Range& range) {
  std::ostringstream text;
  text << range.line << ":" << range.column << "-" << range.end_line << ":" << range.end_column;
  return text.str();
}

bool is_kind(const std::string& kind, Node node) {
  if (kind == "Call") return node.is(Kind::Call);
  if (kind == "Subscript") return node.is(Kind::Subscript) || node.is(Kind::GenericType);
  if (kind == "BinOp") return node.is(Kind::BinaryOperator) || node.is(Kind::UnionType);
  if (kind == "Compare") return node.is(Kind::ComparisonOperator);
  if (kind == "BoolOp") return node.is(Kind::BooleanOperator);
  if (kind == "Lambda") return node.is(Kind::Lambda);
  if (kind == "Attribute") return node.is(Kind::Attribute) || node.is(Kind::DottedName) || node.is(Kind::MemberType);
  return true;
}

TEST_CASE("Every expression of CPython's tree is a node") {
  std::size_t count = 0;
  std::size_t bytes = 0;
  Mismatches files;
  Mismatches expressions;
  const auto began = std::chrono::steady_clock::now();
  std::chrono::duration<double> parsing{0};
  for (const Facts& facts : corpus()) {
    if (!facts.compiles) continue;
    const auto start = std::chrono::steady_clock::now();
    const SourceFile file(facts.path, text_of(facts.path));
    parsing += std::chrono::steady_clock::now() - start;
    bytes += file.text().size();
    if (file.has_errors()) {
      files.add(facts.path);
      continue;
    }
    for (const Expression& each : facts.expressions) {
      ++count;
      const Node node = node_at(file, each.range);
      if (node.range() == each.range && is_kind(each.kind, node)) continue;
      expressions.add(facts.path + ":" + written(each.range) + " " + each.kind + " is " +
                      std::string(to_string(node.kind())) + " " + written(node.range()));
    }
  }
  if (all_sources()) {
    const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - began;
    std::printf("%zu files, %.1f MB, parsed in %.1f s; with errors %zu:%s\n", corpus().size(), 1e-6 * double(bytes),
                parsing.count(), files.count(), files.shown().c_str());
    std::printf("%zu expressions, %.1f s, other nodes for %zu:%s\n", count, whole.count(), expressions.count(),
                expressions.shown().c_str());
  }
  INFO(files.shown() << expressions.shown());
  REQUIRE(corpus().size() > 20);
  CHECK(files.count() * 100 <= corpus().size());
  CHECK(expressions.count() * 10000 <= count);
}

// CPython does not count a name of the module that only functions bind, by `global`.
bool is_bound_here(const SourceFile& file, const Scope& scope, std::string_view name) {
  const auto all = file.definitions().of_name(scope, name);
  return std::any_of(all.begin(), all.end(), [&scope](const Definition* each) { return each->scope == &scope; });
}

std::string local_names(const SourceFile& file, const Scope& scope) {
  std::string names;
  for (const std::string_view name : scope.names) {
    if (name.find("__") != std::string_view::npos) continue;
    if (scope.kind == ScopeKind::Module && !is_bound_here(file, scope, name)) continue;
    names += (names.empty() ? "" : ",") + std::string(name);
  }
  return names;
}

bool is_scope(const ScopeFact& fact, const Scope& scope) {
  const bool of_class = scope.kind == ScopeKind::Class;
  if (fact.kind == "module") return scope.kind == ScopeKind::Module;
  if (scope.kind == ScopeKind::Module || (fact.kind == "class") != of_class) return false;
  if (scope.node.line() != fact.line) return false;
  const std::string_view name = scope.node.child(Field::Name).text();
  if (!name.empty()) return name == fact.name;
  return (fact.name == "lambda") == (scope.kind == ScopeKind::Lambda);
}

TEST_CASE("The names that are local to a scope are those of CPython") {
  std::size_t count = 0;
  Mismatches scopes;
  for (const Facts& facts : corpus()) {
    if (!facts.compiles) continue;
    const SourceFile file(facts.path, text_of(facts.path));
    if (file.has_errors()) continue;
    for (const ScopeFact& fact : facts.scopes) {
      if (fact.kind != "module" && fact.kind != "class" && fact.kind != "function") continue;
      ++count;
      std::string seen;
      bool equal = false;
      for (const auto& [index, scope] : file.scopes().all()) {
        if (!is_scope(fact, scope)) continue;
        seen = local_names(file, scope);
        equal = equal || seen == fact.names;
      }
      if (!equal) {
        scopes.add(facts.path + ":" + std::to_string(fact.line) + " " + fact.name + " " + fact.names + " is " + seen);
      }
    }
  }
  if (all_sources()) std::printf("%zu scopes, different %zu:%s\n", count, scopes.count(), scopes.shown().c_str());
  INFO(scopes.shown());
  CHECK(count > 100);
  CHECK(scopes.count() * 1000 <= count);
}

struct Work {
  double operations = 0;  // of the parser, the most for a byte, as all of these
  double readings = 0;
  double nodes = 0;
  double vertices = 0;
  double edges = 0;
  std::size_t queries = 0;
  std::uint64_t visits = 0;
};

// Asks for the definitions of a spread of the names that are read.
void ask(const SourceFile& file, std::size_t vertices, Work& work) {
  const std::uint32_t stride = static_cast<std::uint32_t>(file.size() / 50 + 1);
  for (std::uint32_t at = 0; at < file.size(); at += stride) {
    const Node node = file.node(at);
    const std::uint64_t before = file.flow().steps();
    const Reaching found = file.flow().reaching(node);
    const std::uint64_t visits = file.flow().steps() - before;
    // A class is searched, and what is around it. The vertex of the use may be visited twice.
    CHECK(visits <= vertices + 2);
    for (const Reached& each : found.definitions) CHECK(each.definition->target);
    ++work.queries;
    work.visits += visits;
  }
}

void analyze(const SourceFile& file, Work& work) {
  const double bytes = static_cast<double>(file.text().size() + 100);
  std::size_t vertices = 0;
  std::size_t edges = 0;
  for (const auto& [index, scope] : file.scopes().all()) {
    const FlowGraph& graph = file.flow().graph(scope);
    vertices += graph.vertices().size();
    for (const FlowVertex& vertex : graph.vertices()) edges += vertex.before.size();
  }
  ask(file, vertices, work);
  work.operations = std::max(work.operations, static_cast<double>(file.parse_operations()) / bytes);
  work.readings = std::max(work.readings, static_cast<double>(file.bytes_read()) / bytes);
  work.nodes = std::max(work.nodes, static_cast<double>(file.size()) / bytes);
  work.vertices = std::max(work.vertices, static_cast<double>(vertices) / bytes);
  work.edges = std::max(work.edges, static_cast<double>(edges) / bytes);
}

void check(const Work& work, const char* what) {
  if (all_sources()) {
    std::printf(
        "%s, at most for a byte: %.1f operations of the parser, %.1f readings, %.2f nodes, %.2f vertices, %.2f edges; "
        "%zu queries, "
        "%.1f visits each\n",
        what, work.operations, work.readings, work.nodes, work.vertices, work.edges, work.queries,
        double(work.visits) / double(work.queries));
  }
  CHECK(work.operations <= 5);
  CHECK(work.readings <= 100);
  CHECK(work.nodes <= 2);
  CHECK(work.vertices <= 1);
  CHECK(work.edges <= 8);
}

TEST_CASE("The work for a file grows with its size") {
  Work work;
  for (const Facts& facts : corpus()) analyze(SourceFile(facts.path, text_of(facts.path)), work);
  check(work, "As they are");
}

TEST_CASE("The work for a damaged file grows with its size") {
  Work work;
  for (const Facts& facts : corpus()) {
    const std::string text = text_of(facts.path);
    std::string holes = text;
    for (std::size_t at = 500; at < holes.size(); at += 997) holes[at] = "([{'\"\n\\:"[at % 8];
    analyze(SourceFile(facts.path, text.substr(0, text.size() / 2)), work);
    analyze(SourceFile(facts.path, text.substr(text.size() / 3)), work);
    analyze(SourceFile(facts.path, holes), work);
  }
  check(work, "Damaged");
}

std::string repeated(const std::string& part, int times) {
  std::string text;
  for (int time = 0; time < times; ++time) text += part;
  return text;
}

TEST_CASE("Deep and long source is no danger") {
  Work work;
  std::string stairs;
  for (int depth = 0; depth < 600; ++depth) stairs += repeated(" ", depth) + "if a:\n";
  std::string tries;
  for (int depth = 0; depth < 60; ++depth)
    tries += repeated(" ", depth) + "try:\n" + repeated(" ", depth + 1) + "x = 1\n";
  for (int depth = 59; depth >= 0; --depth)
    tries += repeated(" ", depth) + "finally:\n" + repeated(" ", depth + 1) + "y = x\n";
  for (const std::string& text : {
           "x = " + repeated("(", 20000) + repeated(")", 20000) + "\n",
           repeated("(", 20000),
           "x = " + repeated("a + ", 20000) + "b\n",
           "x = a" + repeated(".f(b)", 20000) + "\n",
           "x = " + repeated("a = ", 5000) + "b\n",
           repeated("(", 3000) + "a" + repeated(")", 3000) + " = b\n",
           "x = " + repeated("lambda: ", 3000) + "a\n",
           "x = " + repeated("not ", 20000) + "a\n",
           "x = " + repeated("(a := ", 3000) + "b" + repeated(")", 3000) + "\n",
           repeated("x = 1\n", 20000),
           "if a: pass\n" + repeated("elif b: x = 1\n", 5000),
           "f'" + repeated("{f'", 300) + repeated("'}", 300) + "'\n",
           repeated("def f():\n", 300),
           stairs,
           tries,
           repeated("'''", 3000),
           repeated("\\\n", 20000),
           "if a:\n" + repeated("  # why\n", 20000) + "  b\n",
           std::string(50000, '\0'),
           std::string(50000, '\xff'),
       }) {
    INFO(text.substr(0, 60));
    const SourceFile file("a.py", text);
    CHECK(file.root().end_byte() <= text.size());
    analyze(file, work);
  }
  CHECK(work.queries > 100);
}

}  // namespace
}  // namespace devsan::program
