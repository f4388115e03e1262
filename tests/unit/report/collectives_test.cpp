// What is made of the ranks' collectives: hangs, mismatches and long waits, also with several groups.
#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>

#include "job_of_three.h"
#include "report/wording/collective_text.h"

namespace devsan::report {
namespace {

using Catch::Matchers::Contains;
using trace::CloseMark;
using trace::CollectiveState;

TEST_CASE("ranks that wait in a collective which another never entered are a hang, at the line of the other") {
  JobOfThree job;
  enter_all(job, {});
  for (int rank = 0; rank < 2; ++rank) {
    job.enter(rank, {.number = 2, .state = CollectiveState::failed, .line = 20});
    job.raise(rank, "RuntimeError", 130);
  }
  job.kill(2, SIGTERM, 131);
  job.ran(2, "aten::add", "/srv/data.py", 7);
  job.read();

  const std::vector<Finding> findings = job.findings();
  REQUIRE(findings.size() == 1);
  const Finding& hang = findings[0];
  CHECK(hang.kind == Kind::collective_hang);
  CHECK(hang.severity == Severity::error);
  CHECK(hang.ranks == std::vector{2});
  REQUIRE(hang.where);
  CHECK(hang.where->line == 7);
  CHECK(collective_headline(hang) == "ranks 0, 1 waited in all_reduce 2, which rank 2 never entered");
  REQUIRE(hang.collective->per_rank.size() == 3);
  CHECK(hang.collective->per_rank[0].state == RankTurn::waiting);
  CHECK(hang.collective->per_rank[0].where->line == 20);
  CHECK(hang.collective->per_rank[2].state == RankTurn::never_entered);
  CHECK(hang.collective->per_rank[2].what == "ran aten::add last");
  const auto first = job.first_failure();
  REQUIRE(first);
  CHECK(first->rank == 0);
  CHECK(first->finding == hang.id);
  CHECK(first->missing == std::vector{2});
  CHECK(first_failure_text(*first) ==
        "rank 2 never entered all_reduce 2, which ranks 0, 1 waited in; it was last seen at data.py:7");
  CHECK(then_waited_text(*first) == "rank 0 was the first to give up, in step 3: it raised RuntimeError: no more");
}

TEST_CASE("a group is waited for by its members alone") {
  JobOfThree job;
  enter_all(job, {});
  job.enter(0, {.group = kPair, .state = CollectiveState::failed, .line = 30});
  job.raise(0, "RuntimeError", 130);
  job.kill(1, SIGTERM, 131);
  job.kill(2, SIGTERM, 131);
  job.read();

  const std::vector<Finding> findings = job.findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].ranks == std::vector{1});
  CHECK(findings[0].collective->group_ranks == std::vector{0, 1});
  CHECK(findings[0].collective->per_rank.size() == 2);
}

TEST_CASE("a rank that waits in another group is told to be there") {
  JobOfThree job;
  job.enter(2, {.state = CollectiveState::failed});                  // waits for 0 and 1
  job.enter(0, {.group = kPair, .state = CollectiveState::failed});  // which waits for 1
  job.raise(0, "RuntimeError", 130);
  job.raise(2, "RuntimeError", 130);
  job.kill(1, SIGTERM, 131);
  job.read();

  const std::vector<Finding> findings = job.findings();
  REQUIRE(findings.size() == 2);
  for (const Finding& finding : findings) CHECK(std::ranges::find(finding.ranks, 1) != finding.ranks.end());
  const auto of_all = std::ranges::find_if(findings, [](const Finding& one) { return one.collective->group == "0"; });
  REQUIRE(of_all != findings.end());
  CHECK(of_all->collective->per_rank[0].state == RankTurn::entered_other);
  CHECK(of_all->collective->per_rank[0].what == "was in all_reduce 1 of group 1, then raised RuntimeError: no more");
}

TEST_CASE("a rank that waits for one which waits for the rank that failed is explained by that, too") {
  JobOfThree job;
  enter_all(job, {});
  job.raise(2, "ValueError", 120);
  job.enter(1, {.number = 2, .state = CollectiveState::failed});     // waits for 2
  job.enter(0, {.group = kPair, .state = CollectiveState::failed});  // waits for 1
  job.raise(1, "RuntimeError", 130, kLostPeer);
  job.raise(0, "RuntimeError", 130, kLostPeer);
  job.read();
  CHECK(job.findings().empty());
  const auto first = job.first_failure();
  REQUIRE(first);
  CHECK(first->rank == 2);
}

TEST_CASE("a collective whose end nobody tells is one that a rank waits in while a thread waits for it") {
  const bool awaited = GENERATE(false, true);
  JobOfThree job;
  enter_all(job, {});
  for (int rank = 0; rank < 2; ++rank) {
    job.enter(rank, {.number = 2, .state = CollectiveState::issued, .end_told = false, .awaited = awaited});
    job.raise(rank, "DistBackendError", 130);
  }
  job.read();
  CHECK(job.findings().size() == (awaited ? 1 : 0));
}

TEST_CASE("the members of a group are found in whichever order torch names them") {
  constexpr std::uint32_t kOthers = 3;
  JobOfThree job;
  for (const int rank : {0, 2}) {
    job.group(rank, kOthers, "2", {2, 0});
    job.enter(rank, {.group = kOthers});
  }
  job.enter(2, {.group = kOthers, .number = 2, .state = CollectiveState::failed});
  job.raise(2, "RuntimeError", 130);
  job.kill(0, SIGTERM, 131);
  job.read();
  const std::vector<Finding> findings = job.findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].ranks == std::vector{0});
  CHECK(findings[0].collective->sequence == 2);
  CHECK(findings[0].collective->per_rank.size() == 2);
}

TEST_CASE("of a group that is waited in several times, the first that a rank never entered is the hang") {
  JobOfThree job;
  enter_all(job, {});
  for (std::uint64_t number = 2; number <= 4; ++number) {
    job.enter(0, {.number = number, .state = CollectiveState::issued});
    if (number < 4) job.enter(1, {.number = number, .state = CollectiveState::issued});
  }
  job.enter(2, {.number = 2, .state = CollectiveState::issued});
  job.raise(0, "RuntimeError", 130);
  job.raise(1, "RuntimeError", 130);
  job.kill(2, SIGTERM, 131);
  job.read();
  const std::vector<Finding> findings = job.findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].ranks == std::vector{2});
  CHECK(findings[0].collective->sequence == 3);
}

TEST_CASE("a run that ended well has no finding, whatever its traces say of collectives") {
  JobOfThree job;
  job.enter(0, {.state = CollectiveState::issued});
  job.enter(1, {.op = "c10d::broadcast_"});
  job.read();
  CHECK(job.findings().empty());
  CHECK_FALSE(job.first_failure());
}

TEST_CASE("a collective that was in flight when somebody ended the run is no finding, and a long wait is a warning") {
  for (const std::int64_t end : {102, 200}) {
    JobOfThree job;
    for (int rank = 0; rank < 2; ++rank) job.enter(rank, {.state = CollectiveState::issued});
    for (int rank = 0; rank < 3; ++rank) job.kill(rank, SIGTERM, end);
    job.read();
    const std::vector<Finding> findings = job.findings();
    REQUIRE(findings.size() == (end == 200 ? 1 : 0));
    for (const Finding& finding : findings) CHECK(finding.severity == Severity::warning);
    CHECK_FALSE(job.first_failure());
  }
}

TEST_CASE("another collective, or another size, under one number is a mismatch, at the line of the fewer") {
  const Entered other = GENERATE(Entered{.number = 2, .op = "c10d::broadcast_", .line = 40},
                                 Entered{.number = 2, .bytes = 28, .line = 40});
  JobOfThree job;
  enter_all(job, {});
  for (int rank = 0; rank < 2; ++rank) {
    job.enter(rank, {.number = 2, .state = CollectiveState::failed, .line = 20});
    job.raise(rank, "RuntimeError", 130);
  }
  job.enter(2, other);
  job.raise(2, "RuntimeError", 130, kLostPeer);
  job.read();

  const std::vector<Finding> findings = job.findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].kind == Kind::collective_mismatch);
  CHECK(findings[0].ranks == std::vector{2});
  REQUIRE(findings[0].where);
  CHECK(findings[0].where->line == 40);
  CHECK(findings[0].collective->per_rank[2].state == RankTurn::entered_other);
  CHECK_THAT(collective_headline(findings[0]), Contains("the others all_reduce of 16 bytes"));
  CHECK_THAT(collective_headline(findings[0]), !Contains("then"));
}

TEST_CASE("ranks that entered different things in a mismatch are told each with its own") {
  JobOfThree job;
  enter_all(job, {});
  job.enter(0, {.number = 2, .state = CollectiveState::failed});
  job.enter(1, {.number = 2, .state = CollectiveState::failed, .op = "c10d::broadcast_"});
  job.enter(2, {.number = 2, .state = CollectiveState::failed, .bytes = 28});
  for (int rank = 0; rank < 3; ++rank) job.raise(rank, "RuntimeError", 130);
  job.read();
  const std::vector<Finding> findings = job.findings();
  REQUIRE(findings.size() == 1);
  CHECK(collective_headline(findings[0]) ==
        "rank 1 entered broadcast of 16 bytes float32 on cuda:1, rank 2 entered all_reduce of 28 bytes float32 on "
        "cuda:2, the others all_reduce of 16 bytes float32 on cuda:0, as number 2 of their group");
}

TEST_CASE("parts of an all_to_all and of a gather may differ in size") {
  const char* const op = GENERATE("c10d::alltoall_base_", "c10d::allgather_", "c10d::gather_");
  JobOfThree job;
  for (int rank = 0; rank < 3; ++rank) {
    job.enter(rank, {.state = CollectiveState::failed, .op = op, .bytes = 16u + static_cast<unsigned>(rank)});
    job.raise(rank, "RuntimeError", 130 + rank);
  }
  job.read();
  CHECK(job.findings().empty());
}

TEST_CASE("A long wait that ended by itself is a note about the rank that came late, also when the rings came round") {
  const bool came_round = GENERATE(false, true);
  JobOfThree job;
  for (int rank : {0, 2}) {
    job.enter(rank, {.entered_s = 100, .finished_s = 112});
    job.notice(rank, 105, 1);
    job.keep(rank, 0);
  }
  job.notice(1, 106, 0);
  job.enter(1, {.entered_s = 111, .finished_s = 112});
  job.keep(1, 0);
  for (int rank = 0; rank < 3; ++rank) {
    const std::uint64_t more = came_round ? trace::kCollectiveEntries + 5 : 2;
    for (std::uint64_t number = 2; number < more; ++number) {
      job.enter(rank, {.number = number, .entered_s = 113, .finished_s = 113});
    }
  }
  job.read();
  const std::vector<Finding> findings = job.findings();
  REQUIRE(findings.size() == 1);
  const Finding& slow = findings[0];
  CHECK(slow.kind == Kind::collective_slow);
  CHECK(slow.severity == Severity::note);
  CHECK(slow.ranks == std::vector<int>{1});
  CHECK(slow.collective->waited_ns == 12 * kSecond);
  REQUIRE(slow.where);
  CHECK(slow.where->line == 101);
  CHECK(collective_headline(slow) ==
        "rank 1 kept ranks 0, 2 waiting for 12.0 s in all_reduce 1, entered from train.py:10");
  CHECK(slow.collective->per_rank[1].what == "entered it 11.0 s after the first, and was here meanwhile");
  CHECK_FALSE(job.first_failure());
}

TEST_CASE("A long wait that all ranks had entered blames none of them") {
  JobOfThree job;
  for (int rank = 0; rank < 3; ++rank) {
    job.enter(rank, {.entered_s = 100, .finished_s = 175});
    job.notice(rank, 105, 1);
  }
  job.read();
  const std::vector<Finding> findings = job.findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].ranks == std::vector<int>{0, 1, 2});
  CHECK(collective_headline(findings[0]) == "ranks 0-2 spent 1 min 15 s in all_reduce 1, entered from train.py:10");
}

TEST_CASE("A wait that a rank is still in is no slow one") {
  JobOfThree job;
  job.enter(0, {.state = CollectiveState::issued, .entered_s = 100});
  job.notice(0, 105, 1);
  job.enter(1, {.entered_s = 104, .finished_s = 106});
  job.notice(1, 105, 1);
  job.read();
  for (const Finding& finding : job.findings()) CHECK(finding.kind != Kind::collective_slow);
}

}  // namespace
}  // namespace devsan::report
