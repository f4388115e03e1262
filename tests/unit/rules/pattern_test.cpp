#include "rules/pattern.h"

#include <catch2/catch.hpp>

using devsan::rules::Pattern;

namespace {

bool matches(std::string_view pattern, std::string_view name) {
  Pattern::Error error;
  const auto parsed = Pattern::parse(pattern, &error);
  REQUIRE(parsed);
  return parsed->matches(name);
}

std::string complaint(std::string_view pattern) {
  Pattern::Error error;
  REQUIRE_FALSE(Pattern::parse(pattern, &error));
  return std::to_string(error.at) + ": " + error.text;
}

}  // namespace

TEST_CASE("a pattern is a run of whole components of a name") {
  CHECK(matches("experts.2", "model.moe.experts.2.w1.weight"));
  CHECK(matches("weight", "model.weight"));
  CHECK_FALSE(matches("experts.2", "model.experts.21.weight"));
  CHECK_FALSE(matches("perts.2", "model.experts.2.weight"));
  CHECK(matches("groups", "optimizer.groups[3]"));
}

TEST_CASE("a range of numbers in braces has both ends") {
  CHECK(matches("experts.{0-3}", "experts.0.weight"));
  CHECK(matches("experts.{0-3}", "experts.3.weight"));
  CHECK_FALSE(matches("experts.{0-3}", "experts.4.weight"));
  CHECK_FALSE(matches("experts.{0-3}", "experts.31.weight"));
  CHECK_FALSE(matches("experts.{0-3}", "experts.gate.weight"));
}

TEST_CASE("ranges and numbers stand beside each other in braces") {
  CHECK(matches("experts.{0-3,7}", "experts.2.weight"));
  CHECK(matches("experts.{0-3,7}", "experts.7.weight"));
  CHECK_FALSE(matches("experts.{0-3,7}", "experts.5.weight"));
  CHECK_FALSE(matches("experts.{0-3,7}", "experts.70.weight"));
}

TEST_CASE("texts in braces are alternatives, and a star is any text") {
  CHECK(matches("{encoder,decoder}.norm", "model.decoder.norm.weight"));
  CHECK_FALSE(matches("{encoder,decoder}.norm", "model.codec.norm.weight"));
  CHECK(matches("*.fp32_partitioned_groups_flat[*]", "engine.optimizer.fp32_partitioned_groups_flat[0]"));
  CHECK(matches("layer?.bias", "layer7.bias"));
  CHECK(matches("*", "anything.at.all"));
  CHECK(matches("lora_*", "q.lora_A.weight"));
}

TEST_CASE("what is wrong with a pattern is told with its place") {
  CHECK(complaint("experts.{0-3") == "8: a brace is not closed");
  CHECK(complaint("a.{0..3}") == "2: a range of numbers is written {0-3}");
  CHECK(complaint("a.{0-3,gate}") == "2: a range of numbers stands beside texts in braces");
  CHECK(complaint("a.{3-1}") == "2: the numbers in braces go from a larger to a smaller one");
  CHECK(complaint("a}") == "1: a brace is closed that was not opened");
  CHECK(complaint("{a,{b,c}}") == "0: braces stand in braces");
  CHECK(complaint("{a,,b}") == "0: one of the texts in braces is empty");
  CHECK(complaint(std::string(600, 'a')).starts_with("0: the pattern is longer"));
  std::string braces;
  for (int k = 0; k < 17; ++k) braces += "{a,b}";
  CHECK(complaint(braces) == "80: more than 16 pairs of braces");
}

TEST_CASE("a pattern whose alternatives multiply is matched in steps that add up") {
  std::string pattern;
  for (int k = 0; k < 16; ++k) pattern += "*{a,aa,aaa}";
  // To try each of the 43 million ways would not end in this life of the test.
  CHECK_FALSE(matches(pattern, std::string(400, 'a') + "b"));
}
