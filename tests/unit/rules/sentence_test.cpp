#include <catch2/catch.hpp>

#include "rules/rule.h"

using namespace devsan::rules;
using devsan::trace::Phase;
using devsan::trace::PlaceKind;

namespace {

Rule parsed(std::string_view sentence) {
  Rule rule;
  const auto error = parse_sentence(sentence, rule);
  INFO((error ? error->text : std::string()));
  REQUIRE_FALSE(error);
  return rule;
}

std::string complaint(std::string_view sentence) {
  Rule rule;
  const auto error = parse_sentence(sentence, rule);
  REQUIRE(error);
  return std::to_string(error->at) + ": " + error->text;
}

}  // namespace

TEST_CASE("a name on a device is about all tensors that are kept under it") {
  const Rule rule = parsed("experts.{0-3} on cuda:1");
  CHECK(rule.about == About::place);
  CHECK(rule.pattern == "experts.{0-3}");
  CHECK(text_of(rule.places) == "cuda:1");
  CHECK(rule.kinds == (mask_of(PlaceKind::parameter) | mask_of(PlaceKind::buffer) | mask_of(PlaceKind::attribute)));
  CHECK(rule.name == "experts.{0-3} on cuda:1");
}

TEST_CASE("kinds of tensors, pinned memory and several devices can be named") {
  const Rule rule = parsed("parameters and buffers of *.flat[*] on cpu pinned or cuda:local_rank");
  CHECK(rule.kinds == (mask_of(PlaceKind::parameter) | mask_of(PlaceKind::buffer)));
  CHECK(rule.pattern == "*.flat[*]");
  REQUIRE(rule.places.size() == 2);
  CHECK(rule.places[0].pinned);
  CHECK(text_of(rule.places) == "cpu pinned or cuda:local_rank");
  CHECK(parsed("optimizer state beside its parameter").about == About::beside_parameter);
  CHECK(parsed("parameters of encoder on one device").about == About::one_device);
  CHECK(parsed("activations of decoder on cuda").about == About::activations);
}

TEST_CASE("waits and copies are forbidden by phase and size") {
  CHECK(parsed("no host sync in phase forward").phase == Phase::forward);
  const Rule rule = parsed("no transfer over 1 MiB in phase backward");
  CHECK(rule.about == About::transfer);
  CHECK(rule.over == 1 << 20);
  CHECK(rule.phase == Phase::backward);
  CHECK(parsed("no transfer over 64KiB").over == 64 << 10);
  CHECK_FALSE(parsed("no host sync").phase);
}

TEST_CASE("what is wrong with a sentence is told with its place and what may have been meant") {
  CHECK(complaint("experts on cdua:1") == "11: 'cdua:1' is no device such as cpu or cuda:1; did you mean cuda?");
  CHECK(complaint("experts on") == "10: where a device is expected, the sentence ends");
  CHECK(complaint("parameter of head on cuda:3") ==
        "0: 'parameter' is no kind of tensors (parameters, buffers, attributes, optimizer state, activations); did you "
        "mean parameters?");
  CHECK(complaint("weights of head on cuda:3") ==
        "0: 'weights' is no kind of tensors (parameters, buffers, attributes, optimizer state, activations)");
  CHECK(complaint("no host sync in phase forwrad").find("did you mean forward?") != std::string::npos);
  CHECK(complaint("experts onn cuda").find("8: ") == 0);
  CHECK(complaint("no transfer over 1 MB").find("did you mean MiB?") != std::string::npos);
  CHECK(complaint("experts on cuda:x") == "11: behind the colon of a device stands its number, local_rank or rank");
  CHECK(complaint("experts on cuda pinned") == "16: only memory of the cpu is pinned");
  CHECK(complaint("a on cpu b") == "9: nothing is expected behind this: 'b'");
  CHECK(complaint("") == "0: the sentence is empty");
  CHECK(complaint("experts.{0-3 on cpu") == "8: a brace is not closed");
  CHECK(complaint("parameters beside its parameter").find("only optimizer state") != std::string::npos);
}

TEST_CASE("a rule comes through its compiled line as it was") {
  Rule rule = parsed("experts on cuda:1");
  rule.name = "experts";
  rule.ranks = {{0, 3}, {8, 8}};
  rule.steps = {{10, kNoEnd}};
  const auto again = rule_of_line("rules.toml", 7, compiled_line(rule));
  REQUIRE(again);
  CHECK(again->file == "rules.toml");
  CHECK(again->line == 7);
  CHECK(again->name == "experts");
  CHECK(again->sentence == rule.sentence);
  CHECK(format_spans(again->ranks) == "0-3, 8");
  CHECK(format_spans(again->steps) == "10-");
  CHECK_FALSE(rule_of_line("", 0, "rule\tname\texperts on nowhere"));
  CHECK_FALSE(rule_of_line("", 0, "rule\tname\ta on cpu\tranks=x"));
  CHECK(off_of_line(compiled_off("average-beside-model")) == "average-beside-model");
}

TEST_CASE("a sentence that a file breaks into lines is one line, and comes through its compiled line") {
  Rule rule;
  REQUIRE_FALSE(parse_sentence("buffers of **.norm\n\ton one device", rule));
  CHECK(rule.sentence == "buffers of **.norm on one device");
  CHECK(rule.name == rule.sentence);
  const auto back = rule_of_line("rules.toml", 3, compiled_line(rule));
  REQUIRE(back);
  CHECK(back->sentence == rule.sentence);
}

TEST_CASE("spans are numbers and ranges") {
  CHECK(format_spans(*parse_spans("0-3, 8")) == "0-3, 8");
  CHECK(holds(*parse_spans("2-"), 1000));
  CHECK_FALSE(holds(*parse_spans("2-"), 1));
  CHECK_FALSE(holds(*parse_spans("2-"), std::nullopt));
  CHECK(holds({}, std::nullopt));
  for (const char* wrong : {"", "-", "3-1", "a", "1,,2", "1-2-3", "-4"}) CHECK_FALSE(parse_spans(wrong));
}

TEST_CASE("a sentence is the same however it is spaced") {
  Rule wide;
  Rule narrow;
  CHECK_FALSE(parse_sentence(" a \r\n on\t cpu\r ", wide));
  CHECK_FALSE(parse_sentence("a on cpu", narrow));
  CHECK(wide.sentence == narrow.sentence);
}
