// What the head of the page has of findings, and what it leaves out.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "report/render/page_data.h"
#include "report/render/render_json.h"
#include "samples.h"

namespace devsan::report {
namespace {

RankInCollective at_line(int rank, RankTurn state) {
  RankInCollective turn;
  turn.rank = rank;
  turn.state = state;
  turn.threads = {{"MainThread", 7, {Frame{}}}};
  return turn;
}

Finding hang() {
  Finding finding = samples::allowed_scalar();
  finding.kind = Kind::collective_hang;
  finding.ranks = {1};
  finding.collective = CollectiveStory{};
  finding.collective->per_rank = {at_line(0, RankTurn::waiting), at_line(1, RankTurn::never_entered)};
  return finding;
}

TEST_CASE("of a collective the page has no stacks of ranks that wait in it") {
  const Report report = samples::report_of({hang()});
  const Json turns = page_head(report, {})["report"]["findings"][0]["collective"]["per_rank"];
  CHECK_FALSE(turns[0].contains("threads"));
  CHECK(turns[1]["threads"].size() == 1);
  const Json all = Json::parse(render_json(report))["findings"][0]["collective"]["per_rank"];
  CHECK(all[0]["threads"].size() == 1);
}

TEST_CASE("the page has the collective that missing ranks never entered once") {
  Report report = samples::report_of({hang()});
  FirstFailure failure;
  failure.waiting = report.findings[0].collective;
  failure.finding = report.findings[0].id;
  failure.missing = {1};
  report.run.first_failure = failure;
  CHECK(page_head(report, {})["report"]["run"]["first_failure"]["waiting"].is_null());
  report.run.first_failure->finding.clear();  // as where the missing ranks left no trace
  CHECK(page_head(report, {})["report"]["run"]["first_failure"]["waiting"]["per_rank"].size() == 2);
  report.run.first_failure->missing.clear();
  CHECK(page_head(report, {})["report"]["run"]["first_failure"]["waiting"]["per_rank"].size() == 2);
}

TEST_CASE("the page says of a finding what the terminal says") {
  Finding finding = samples::allowed_scalar();
  finding.silence = Silence{};
  finding.silence->by = Silence::By::allowed;
  finding.traffic = Traffic{};
  finding.traffic->per_step = 0.02;
  finding.growth = Growth{};
  finding.growth->device = "cuda:0";
  finding.growth->since = 3;
  finding.growth->steps_left = 1;
  Report report = samples::report_of({});
  report.suppressed = {finding};
  const Json said = page_head(report, {})["beside"]["sentences"][finding.id];
  CHECK(said["silence"] == "the program allows it (devsan.allow)");
  CHECK(said["cost"] == "0.02 times a step");
  CHECK(said["outlook"] == "Since step 3. At this rate cuda:0 is full in 1 more step.");
  CHECK_FALSE(said.contains("what_grows"));
}

}  // namespace
}  // namespace devsan::report
