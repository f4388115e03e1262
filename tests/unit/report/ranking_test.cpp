// What speaks for a line, and how a fitted model puts lines in order.
#include <algorithm>
#include <catch2/catch.hpp>

#include "program_findings.h"
#include "report/ranking/candidate.h"
#include "report/ranking/model.h"
#include "report/ranking/rank.h"
#include "sample_program.h"

namespace devsan::report {
namespace {

using program_findings::created;
using program_findings::odd;
using ranking::Candidate;
using ranking::Feature;
using ranking::Model;

// Of a finding in a program; lives as long as that.
struct Candidates {
  Candidates(SampleProgram& sample, const Finding& finding)
      : program(sample),
        code(sample.codebase(), finding),
        places(slice::slice_of(finding, code)),
        all(ranking::candidates_of(finding, code, places)) {}

  const Candidate& at(const char* mark) const {
    const auto found = std::ranges::find(all, program.line(mark), &Candidate::line);
    REQUIRE(found != all.end());
    return *found;
  }

  const SampleProgram& program;
  slice::Code code;
  std::vector<slice::Place> places;
  std::vector<Candidate> all;
};

constexpr const char* kNet = R"(
class Net(nn.Module):
    def __init__(self, device):
        self.w = torch.ones(4)  # stored
    def forward(self, x):
        w = self.w.to(x.dtype)  # cast
        return x + w  # fails
net = Net(device)  # made
net(x)  # call
)";

Finding failing_net(const SampleProgram& program) {
  Finding finding = program.failing("Net.forward", "x + w", "w", {program.at("call", "<module>", "net(x)")});
  odd(finding).lineage = {created(program.at("stored", "Net.__init__", "torch.ones(4)"))};
  return finding;
}

TEST_CASE("A candidate has what the history, the text and the scope say of its line") {
  SampleProgram program(kNet);
  const Candidates candidates(program, failing_net(program));

  const Candidate& stored = candidates.at("stored");
  CHECK(stored[Feature::made_odd] == 1);
  CHECK(stored[Feature::in_constructor] == 1);
  CHECK(stored[Feature::assigns_attribute] == 1);
  CHECK(stored[Feature::line_makes] == 1);
  CHECK(stored[Feature::of_module] == 1);
  CHECK(stored[Feature::knows_device] > 0);
  CHECK(stored[Feature::is_failing_line] == 0);
  CHECK(stored[Feature::odd_is_local] == 1);

  const Candidate& cast = candidates.at("cast");
  CHECK(cast[Feature::in_failing_function] == 1);
  CHECK(cast[Feature::in_constructor] == 0);
  CHECK(cast[Feature::made_odd] == 0);
  CHECK(cast[Feature::dtype_alone] == 1);

  const Candidate& fails = candidates.at("fails");
  CHECK(fails[Feature::is_failing_line] == 1);
  CHECK(fails[Feature::near_odd] > stored[Feature::near_odd]);
  CHECK(fails[Feature::odd_is_local] == 1);
}

TEST_CASE("Each line is one candidate, in the order of lines") {
  SampleProgram program(kNet);
  const Candidates candidates(program, failing_net(program));
  REQUIRE(candidates.all.size() >= 4);
  CHECK(std::ranges::is_sorted(candidates.all, std::less<>(), &Candidate::line));
  CHECK(std::ranges::adjacent_find(candidates.all, {}, &Candidate::line) == candidates.all.end());
}

// Two trees: one asks made_odd, then in_constructor; the other is a leaf.
constexpr const char* kTrees = R"({"features": ["made_odd", "in_constructor"], "likely": 0.5, "trees": [
  {"splits": [[0, 0.5, -1, 1], [1, 0.5, -2, -3]], "leaves": [1, 2, 4]},
  {"splits": [], "leaves": [0.5]}]})";

TEST_CASE("A score is the sum of the leaves that the splits lead to") {
  const Model model(kTrees);
  CHECK(model.likely() == 0.5);
  Candidate candidate;
  CHECK(model.score(candidate) == 1.5);
  candidate[Feature::in_constructor] = 1;
  CHECK(model.score(candidate) == 1.5);
  candidate[Feature::made_odd] = 1;
  CHECK(model.score(candidate) == 4.5);
  candidate[Feature::in_constructor] = 0.5;
  CHECK(model.score(candidate) == 2.5);
}

std::string model_of(const std::string& features, const std::string& trees) {
  return R"({"features": [)" + features + R"(], "likely": 1, "trees": [)" + trees + "]}";
}

TEST_CASE("A model that is none is refused") {
  CHECK_NOTHROW(Model(model_of("\"made_odd\"", R"({"splits": [[0, 1, -1, -2]], "leaves": [1, 2]})")));
  CHECK_THROWS(Model("no JSON"));
  CHECK_THROWS(Model("{}"));
  CHECK_THROWS_WITH(Model(model_of("\"colour\"", "")), Catch::Contains("unknown feature: colour"));
  const auto tree = [](const char* text) { return model_of("\"made_odd\"", text); };
  CHECK_THROWS_WITH(Model(tree(R"({"splits": [], "leaves": []})")), Catch::Contains("without leaves"));
  // To a leaf that there is not, to itself, and behind the last split.
  CHECK_THROWS_WITH(Model(tree(R"({"splits": [[0, 1, -1, -3]], "leaves": [1, 2]})")), Catch::Contains("nowhere"));
  CHECK_THROWS_WITH(Model(tree(R"({"splits": [[0, 1, -1, 0]], "leaves": [1, 2]})")), Catch::Contains("nowhere"));
  CHECK_THROWS_WITH(Model(tree(R"({"splits": [[0, 1, 1, -1]], "leaves": [1, 2]})")), Catch::Contains("nowhere"));
  CHECK_THROWS(Model(tree(R"({"splits": [[1, 1, -1, -2]], "leaves": [1, 2]})")));
}

TEST_CASE("The model that devsan is built with is sound") {
  CHECK(Model::standard().likely() > 0);
  CHECK(Model::standard().likely() <= 1);
}

TEST_CASE("The best candidate comes first, and is likely where it is far ahead") {
  const Model model(kTrees);
  std::vector<Candidate> candidates(3);
  candidates[1][Feature::made_odd] = 1;
  candidates[1][Feature::in_constructor] = 1;
  candidates[2][Feature::made_odd] = 1;
  const auto ranked = ranking::rank(candidates, model);
  REQUIRE(ranked.size() == 3);
  CHECK(ranked[0].candidate == &candidates[1]);
  CHECK(ranked[1].candidate == &candidates[2]);
  CHECK(ranked[2].candidate == &candidates[0]);
  CHECK(ranked[0].likely);
  CHECK_FALSE(ranked[1].likely);
  CHECK(ranked[0].share + ranked[1].share + ranked[2].share == Approx(1));

  candidates[2] = candidates[1];
  const auto even = ranking::rank(candidates, model);
  CHECK(even[0].candidate == &candidates[1]);  // of equal ones the first
  CHECK_FALSE(even[0].likely);
  CHECK(ranking::rank({}, model).empty());
}

TEST_CASE("The most telling place of a line is one of the odd operand's own way") {
  slice::Place used, made, other, program;
  used.side = made.side = slice::Side::odd;
  used.role = slice::Role::used;
  made.role = slice::Role::made;
  made.distance = 5;
  other.side = slice::Side::other;
  other.role = slice::Role::result_dropped;
  program.role = slice::Role::default_device;
  Candidate candidate;
  CHECK(ranking::telling_place(candidate) == nullptr);
  candidate.places = {&program, &other, &used, &made};
  CHECK(ranking::telling_place(candidate) == &made);
  made.leads_to_origin = false;
  CHECK(ranking::telling_place(candidate) == &used);
  candidate.places = {&program, &other};
  CHECK(ranking::telling_place(candidate) == &other);
}

}  // namespace
}  // namespace devsan::report
