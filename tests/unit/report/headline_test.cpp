// What a finding is called in one line, and in a few words.
#include "report/render/headline.h"

#include <catch2/catch.hpp>

namespace devsan::report {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("every kind of finding has a headline and a short one, even where only the kind is known") {
  for (const Kind kind : {
#define DEVSAN_FINDING_KIND(enumerator, name, severity, meaning) Kind::enumerator,
#include "trace/finding_kinds.def"
#undef DEVSAN_FINDING_KIND
       }) {
    Finding finding;
    finding.kind = kind;
    INFO(name_of(kind));
    CHECK_FALSE(headline(finding).empty());
    CHECK_FALSE(short_headline(finding).empty());
  }
}

TEST_CASE("a wrong placement is called by its tensor, not by the operator that put it there") {
  Finding finding;
  finding.kind = Kind::wrong_placement;
  finding.op = "aten::_to_copy";
  finding.operands.emplace_back().name = "optimizer.groups[0]";
  Expectation& expectation = finding.expectation.emplace();
  expectation.expected = "cpu";
  expectation.found = "cuda:1";
  CHECK(short_headline(finding) == "`optimizer.groups[0]` is on cuda:1, where cpu is expected");
}

TEST_CASE("an overwritten attribute is called by its name") {
  Finding finding;
  finding.kind = Kind::attribute_overwritten;
  finding.overwriting = Overwriting{"Expert", "id", std::vector<Writer>(1)};
  CHECK_THAT(short_headline(finding), Contains("Expert.id"));
}

TEST_CASE("what PyTorch refused is called by its operator, or by what PyTorch said") {
  Finding finding;
  finding.message = "Expected all tensors to be on the same device\nException raised from …";
  CHECK(short_headline(finding) == "Expected all tensors to be on the same device");
  finding.op = "aten::mul.Tensor";
  CHECK(short_headline(finding) == "aten::mul.Tensor");
}

}  // namespace
}  // namespace devsan::report
