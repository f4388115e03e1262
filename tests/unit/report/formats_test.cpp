// Texts of programs in formats that are meant for others.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "report/program/edits.h"
#include "report/render/markdown_text.h"
#include "report/render/sarif_places.h"
#include "report/text/masking.h"

namespace devsan::report {
namespace {

TEST_CASE("Home directories become a tilde, whoever's they are") {
  CHECK(masked("/home/ann/job/train.py:3") == "~/job/train.py:3");
  CHECK(masked("at /Users/ann.lee/a.py and /root/b.py") == "at ~/a.py and ~/b.py");
  CHECK(masked("/data/home/ann/x") == "/data/home/ann/x");
  CHECK(masked("/rooted/x /homes/y") == "/rooted/x /homes/y");
}

TEST_CASE("Values that are called secrets are hidden, and code that is none is kept") {
  CHECK(masked("login(api_key='hunter2', n=3)") == "login(api_key='***', n=3)");
  CHECK(masked(R"({"auth_token": "abc", "size": "big"})") == R"({"auth_token": "***", "size": "big"})");
  CHECK(masked("os.environ['SECRET'] = 'abc'") == "os.environ['SECRET'] = '***'");
  CHECK(masked("HF_TOKEN=abc python train.py") == "HF_TOKEN=*** python train.py");
  CHECK(masked("self.key = self.query(x)") == "self.key = self.query(x)");
  CHECK(masked("q = attend(key=k, value=v)") == "q = attend(key=k, value=v)");
  CHECK(masked("token == other") == "token == other");
}

TEST_CASE("Passwords in addresses and tokens of services are hidden") {
  CHECK(masked("git clone https://ann:pw@host/x") == "git clone https://ann:***@host/x");
  CHECK(masked("https://host:80/x@y") == "https://host:80/x@y");
  CHECK(masked("use hf_abcdefghijklmnopqrstuvwx now") == "use *** now");
  CHECK(masked("shelf_abcdefghijklmnopqrstuvwx") == "shelf_abcdefghijklmnopqrstuvwx");
}

TEST_CASE("Code in Markdown has a fence that is longer than any in it") {
  CHECK(code_span("a`b") == "``a`b``");
  CHECK(code_span("`") == "`` ` ``");
  CHECK(code_span("two\nlines") == "`two lines`");
  CHECK(code_span("").empty());
  CHECK(code_cell("a|b") == "`a\\|b`");
  CHECK(code_block("python", "x = '````'") == "`````python\nx = '````'\n`````\n");
}

TEST_CASE("Sentences keep their code and nothing else that is markup") {
  CHECK(prose("`self.x` is *here*") == "`self.x` is \\*here\\*");
  CHECK(prose("ask @ann about #3") == "ask `@`ann about `#`3");
  CHECK(prose("<b>") == "\\<b\\>");
  CHECK(prose("one ` alone") == "one \\` alone");
}

// The text after the replacements, as an editor makes it.
std::string replaced_text(const std::string& text, const Json& replacements) {
  std::vector<std::string> lines(1);
  for (const char c : text) {
    lines.back() += c;
    if (c == '\n') lines.emplace_back();
  }
  const auto offset = [&](int line, int column) {
    std::size_t at = 0;
    for (int i = 1; i < line; ++i) at += lines.at(static_cast<std::size_t>(i - 1)).size();
    return at + static_cast<std::size_t>(column - 1);
  };
  std::string result = text;
  for (auto one = replacements.rbegin(); one != replacements.rend(); ++one) {
    const Json& region = (*one)["deletedRegion"];
    const std::size_t begin = offset(region["startLine"], region["startColumn"]);
    const std::size_t end = offset(region["endLine"], region["endColumn"]);
    result.replace(begin, end - begin, (*one)["insertedContent"]["text"].get<std::string>());
  }
  return result;
}

TEST_CASE("Replacements of SARIF do what the diff does") {
  const std::pair<const char*, const char*> changes[] = {
      {"a\nb\nc\n", "a\nB\nc\n"},
      {"a\nb\nc\n", "a\nb\nnew\nc\n"},
      {"a\nb\nc\n", "a\nc\n"},
      {"a\nb", "a\nb\nc\n"},
      {"a\nb\n", "a\nB"},
      {"a\nb", "a"},
      {"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n12\n13\n"},
      {"", "a\n"},
  };
  for (const auto& [before, after] : changes) {
    const std::string diff = program::as_unified_diff("f.py", before, after);
    INFO(diff);
    CHECK(replaced_text(before, sarif_replacements(diff)) == after);
  }
}

}  // namespace
}  // namespace devsan::report
