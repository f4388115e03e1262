#include "launch/command_line.h"

#include <catch2/catch.hpp>

using devsan::launch::RunWords;
using devsan::launch::split_run_words;

namespace {

using Words = std::vector<std::string>;

RunWords split(const Words& words) {
  return split_run_words(words, [](const std::string& name) { return name == "--out"; });
}

}  // namespace

TEST_CASE("the command begins after the first --, and keeps every later one") {
  const RunWords words = split({"--out", "d", "--quiet", "--", "git", "--", "--out", "x"});
  CHECK(words.options == Words{"--out", "d", "--quiet"});
  CHECK(words.command == Words{"git", "--", "--out", "x"});
}

TEST_CASE("without -- the command begins at the first word that is no option") {
  const RunWords words = split({"--out", "d", "python", "--version"});
  CHECK(words.options == Words{"--out", "d"});
  CHECK(words.command == Words{"python", "--version"});
}

TEST_CASE("a value written with = takes no further word") {
  const RunWords words = split({"--out=d", "ls", "-l"});
  CHECK(words.options == Words{"--out=d"});
  CHECK(words.command == Words{"ls", "-l"});
}

TEST_CASE("an option that lacks its value does not swallow the --") {
  const RunWords words = split({"--out", "--", "ls"});
  CHECK(words.options == Words{"--out"});
  CHECK(words.command == Words{"ls"});
}

TEST_CASE("no command at all is an empty one") {
  CHECK(split({}).command.empty());
  CHECK(split({"--quiet", "--"}).command.empty());
}
