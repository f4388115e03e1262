#include "trace/suppressions.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>

namespace devsan::trace {
namespace {

using Catch::Matchers::Contains;

Suppression only_entry(std::string_view text) {
  const ParsedSuppressions parsed = parse_suppressions(text);
  REQUIRE(parsed.complaints.empty());
  REQUIRE(parsed.entries.size() == 1);
  return parsed.entries.front();
}

SuppressionComplaint only_complaint(std::string_view text) {
  const ParsedSuppressions parsed = parse_suppressions(text);
  REQUIRE(parsed.complaints.size() == 1);
  return parsed.complaints.front();
}

bool matches(std::string_view entry, const FindingPlace& place) {
  return only_entry(entry).matches(place);
}

const FindingPlace kPlace{FindingKind::implicit_sync, "aten::item", "/srv/app/models/train.py", "Trainer.step"};

TEST_CASE("An entry is kinds, conditions and a reason") {
  const Suppression entry = only_entry(
      "\n  implicit-sync,async-race\top=aten::item  file=\"/srv/my app/*\" function=step # shown once  \r\n");
  CHECK(entry.line == 2);
  CHECK(entry.text == "implicit-sync,async-race\top=aten::item  file=\"/srv/my app/*\" function=step");
  CHECK(entry.reason == "shown once");
  CHECK(entry.kinds == (set_of(FindingKind::implicit_sync) | set_of(FindingKind::async_race)));
  CHECK(entry.op == "aten::item");
  CHECK(entry.file == "/srv/my app/*");
  CHECK(entry.function == "step");
  CHECK(only_entry(entry.text).file == entry.file);
}

TEST_CASE("Comments right above an entry are its reason") {
  const ParsedSuppressions parsed = parse_suppressions(
      "# about the file\n\n# a bar that\n# shows the loss\nimplicit-sync file=bar.py\nasync-race\nmemory-growth # "
      "own\n");
  REQUIRE(parsed.entries.size() == 3);
  CHECK(parsed.entries[0].reason == "a bar that shows the loss");
  CHECK(parsed.entries[1].reason.empty());
  CHECK(parsed.entries[2].reason == "own");
}

TEST_CASE("A number sign inside a word is no comment") {
  CHECK(only_entry("implicit-sync file=*/c#/x.py").file == "*/c#/x.py");
  CHECK(only_entry("implicit-sync file=\"a # b\"").file == "a # b");
}

TEST_CASE("What is wrong is told with its line, and the other entries count") {
  const ParsedSuppressions parsed = parse_suppressions(
      "async-race\nrace:foo\nimplicit-sync foo\nimplicit-sync line=3\nimplicit-sync op=\nimplicit-sync op=a op=b\n"
      "implicit-sync file=\"a\nany\nimplicit-sync,\nany op=*\n");
  REQUIRE(parsed.entries.size() == 2);
  CHECK(parsed.entries[1].line == 10);
  REQUIRE(parsed.complaints.size() == 8);
  const char* const kExpected[] = {
      "'race:foo'", "'foo' is not a condition", "'line'", "op= has no pattern", "twice", "not closed", "every finding",
      "''"};
  for (std::size_t k = 0; k < parsed.complaints.size(); ++k) {
    CHECK(parsed.complaints[k].line == static_cast<int>(k) + 2);
    CHECK_THAT(parsed.complaints[k].sentence, Contains(kExpected[k]));
  }
}

TEST_CASE("An unknown kind is told of with those that are known") {
  CHECK_THAT(only_complaint("implicit-snyc").sentence, Contains("'implicit-snyc'") && Contains("implicit-sync"));
}

TEST_CASE("What a terminal must not see is not shown, and much is told of in few words") {
  CHECK_THAT(only_complaint("\x1b[31m").sentence, Contains("'?[31m'") && !Contains("\x1b"));
  std::string text;
  for (int k = 0; k < 500; ++k) text += "nonsense\n";
  const ParsedSuppressions parsed = parse_suppressions(text);
  CHECK(parsed.complaints.size() < 30);
  CHECK_THAT(parsed.complaints.back().sentence, Contains("480 more"));
}

TEST_CASE("A file has bounds") {
  CHECK_THAT(only_complaint(std::string(kMaxSuppressionBytes + 1, '\n')).sentence, Contains("256 KiB"));
  std::string text;
  for (std::size_t k = 0; k <= kMaxSuppressions; ++k) text += "async-race file=x\n";
  CHECK(parse_suppressions(text).entries.size() == kMaxSuppressions);
  CHECK(only_complaint(text).line == static_cast<int>(kMaxSuppressions) + 1);
}

TEST_CASE("All conditions must hold") {
  CHECK(matches("implicit-sync", kPlace));
  CHECK(matches("any op=aten::*", kPlace));
  CHECK(matches("implicit-sync op=aten::item file=train.py function=Trainer.*", kPlace));
  CHECK_FALSE(matches("async-race", kPlace));
  CHECK_FALSE(matches("implicit-sync op=aten::add file=train.py", kPlace));
  CHECK_FALSE(matches("implicit-sync op=aten::item file=test.py", kPlace));
  CHECK_FALSE(matches("implicit-sync op=aten::item function=Tester.*", kPlace));
}

TEST_CASE("An operator is named with or without its overload") {
  const auto on = [](const char* op) { return FindingPlace{FindingKind::mixed_operands, op, "", ""}; };
  CHECK(matches("any op=aten::add", on("aten::add.Tensor")));
  CHECK(matches("any op=aten::add.Tensor", on("aten::add.Tensor")));
  CHECK(matches("any op=*::add_", on("aten::add_.Tensor")));
  CHECK_FALSE(matches("any op=aten::add", on("aten::addmm")));
  CHECK_FALSE(matches("any op=aten::add.Scalar", on("aten::add.Tensor")));
  CHECK_FALSE(matches("any op=*", on("")));
}

TEST_CASE("A file's pattern may begin at any folder, unless it is a whole path") {
  const auto in = [](const char* file) { return FindingPlace{FindingKind::mixed_operands, "", file, ""}; };
  CHECK(matches("any file=train.py", in("/srv/app/train.py")));
  CHECK(matches("any file=train.py", in("train.py")));
  CHECK(matches("any file=app/*.py", in("/srv/app/models/train.py")));
  CHECK(matches("any file=/srv/*", in("/srv/app/train.py")));
  CHECK(matches("any file=*/models/*", in("/srv/app/models/train.py")));
  CHECK(matches("any file=<string>", in("<string>")));
  CHECK_FALSE(matches("any file=train.py", in("/srv/app/pretrain.py")));
  CHECK_FALSE(matches("any file=app", in("/srv/app/train.py")));
  CHECK_FALSE(matches("any file=/app/*", in("/srv/app/train.py")));
}

TEST_CASE("A function is named with or without its class") {
  const auto in = [](const char* function) { return FindingPlace{FindingKind::mixed_operands, "", "", function}; };
  CHECK(matches("any function=Trainer.step", in("Trainer.step")));
  CHECK(matches("any function=step", in("Trainer.step")));
  CHECK(matches("any function=<lambda>", in("main.<locals>.<lambda>")));
  CHECK_FALSE(matches("any function=Trainer", in("Trainer.step")));
  CHECK_FALSE(matches("any function=tep", in("Trainer.step")));
  CHECK_FALSE(matches("any function=*", in("")));
}

TEST_CASE("Patterns know two signs") {
  CHECK(matches_pattern("", ""));
  CHECK(matches_pattern("*", ""));
  CHECK(matches_pattern("a*b*c", "a--b/--c"));
  CHECK(matches_pattern("?b", "ab"));
  CHECK(matches_pattern("*aab", "aaab"));
  CHECK(matches_pattern("[x]", "[x]"));
  CHECK_FALSE(matches_pattern("a*b*c", "a--c--b"));
  CHECK_FALSE(matches_pattern("?", ""));
  CHECK_FALSE(matches_pattern("a", "ab"));
}

// The same by trying every way in which stars can be filled.
bool matches_slowly(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern.front() == '*') {
    return matches_slowly(pattern.substr(1), text) || (!text.empty() && matches_slowly(pattern, text.substr(1)));
  }
  return !text.empty() && (pattern.front() == '?' || pattern.front() == text.front()) &&
         matches_slowly(pattern.substr(1), text.substr(1));
}

TEST_CASE("Patterns agree with an exhaustive search") {
  std::mt19937 random(7);
  const auto word = [&](std::string_view letters) {
    std::string text;
    for (auto length = random() % 9; length > 0; --length) text += letters[random() % letters.size()];
    return text;
  };
  for (int k = 0; k < 20'000; ++k) {
    const std::string pattern = word("ab*?");
    const std::string text = word("ab/");
    INFO(pattern << " against " << text);
    REQUIRE(matches_pattern(pattern, text) == matches_slowly(pattern, text));
  }
}

TEST_CASE("Any bytes can be read") {
  std::mt19937 random(11);
  const std::string alphabet = std::string("ab #\"=\n\r\t,*:\0\xff", 14) + "any file=";
  for (int k = 0; k < 5'000; ++k) {
    std::string text;
    for (auto length = random() % 60; length > 0; --length) text += alphabet[random() % alphabet.size()];
    for (const Suppression& entry : parse_suppressions(text).entries) {
      INFO(entry.text);
      CHECK(parse_suppressions(entry.text).entries.size() == 1);
    }
  }
}

}  // namespace
}  // namespace devsan::trace
