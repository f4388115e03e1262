// Who failed first, and what became of the other ranks, also with several hosts.
#include <catch2/catch.hpp>
#include <csignal>

#include "job_of_three.h"
#include "report/wording/collective_text.h"
#include "trace/run_info_keys.h"

namespace devsan::report {
namespace {

using trace::CloseMark;
using trace::CollectiveState;

TEST_CASE(
    "a rank that ended in a collective comes before those that say their peer is gone, whenever that was noticed") {
  JobOfThree job;
  enter_all(job, {});
  for (int rank = 0; rank < 3; ++rank) {
    job.enter(rank, {.number = 2, .state = rank == 0 ? CollectiveState::entered : CollectiveState::failed});
  }
  job.kill(0, SIGABRT, 131);
  job.raise(1, "RuntimeError", 130, kLostPeer);
  job.raise(2, "DistBackendError", 130, "NCCL error: remote process exited or there was a network error");
  job.read();
  const auto first = job.first_failure();
  REQUIRE(first);
  CHECK(first->rank == 0);
  CHECK(first->what == "was ended by SIGABRT");
}

TEST_CASE("a rank of which nobody knows how it ended comes before those that say their peer is gone") {
  JobOfThree job;
  enter_all(job, {});
  for (int rank = 0; rank < 3; ++rank) {
    job.enter(rank, {.number = 2, .state = rank == 1 ? CollectiveState::entered : CollectiveState::failed});
  }
  job.process(1).close = CloseMark::open;
  job.raise(0, "RuntimeError", 130, kLostPeer);
  job.raise(2, "RuntimeError", 130, kLostPeer);
  job.read();
  const auto first = job.first_failure();
  REQUIRE(first);
  CHECK(first->rank == 1);
  CHECK(first->what == "was killed or crashed");
}

TEST_CASE("of ranks that ended in no collective, nobody was told how, none failed first unless it is alone") {
  JobOfThree job;
  enter_all(job, {});
  const bool alone = GENERATE(false, true);
  for (int rank = 0; rank < 3; ++rank) job.process(rank).close = CloseMark::open;
  for (int rank = alone ? 1 : 2; rank < 3; ++rank) {
    job.enter(rank, {.number = 2, .state = CollectiveState::entered});
  }
  job.read();
  const auto first = job.first_failure();
  if (alone) {
    REQUIRE(first);
    CHECK(first->rank == 0);
    CHECK(first->what == "was killed or crashed");
  } else {
    CHECK((!first || !first->missing.empty()));
  }
}

TEST_CASE("a broken connection that has nothing to do with a collective is a failure of the rank's own") {
  JobOfThree job;
  enter_all(job, {});
  job.raise(1, "BrokenPipeError", 120, "Broken pipe");
  job.enter(0, {.number = 2, .state = CollectiveState::entered});
  job.kill(0, SIGABRT, 131);
  job.read();
  const auto first = job.first_failure();
  REQUIRE(first);
  CHECK(first->rank == 1);
}

TEST_CASE(
    "of ranks that wait in different lines, each is told with its own, and the one that failed is not among them") {
  JobOfThree job;
  enter_all(job, {});
  for (int rank = 0; rank < 3; ++rank) {
    job.enter(rank, {.number = 2, .state = CollectiveState::failed, .line = 20 + rank});
    if (rank > 0) job.raise(rank, "RuntimeError", 130, kLostPeer);
  }
  job.kill(0, SIGABRT, 131);
  job.read();
  const auto first = job.first_failure();
  REQUIRE(first);
  CHECK(then_waited_text(*first) ==
        "ranks 1, 2 then waited in all_reduce 2, entered from train.py:21 (rank 1) and train.py:22 (rank 2)");
}

TEST_CASE("a rank that failed on its own failed first, however late that was noticed, and the others waited for it") {
  JobOfThree job;
  enter_all(job, {});
  for (int rank = 0; rank < 2; ++rank) {
    job.enter(rank, {.number = 2, .state = CollectiveState::failed, .line = 20});
    job.raise(rank, "RuntimeError", 130);
  }
  job.kill(2, SIGKILL, 133);
  job.read();

  CHECK(job.findings().empty());
  const auto first = job.first_failure();
  REQUIRE(first);
  CHECK(first->rank == 2);
  CHECK(first->what == "was ended by SIGKILL");
  REQUIRE(first->waiting);
  CHECK(first->waiting->sequence == 2);
  CHECK(first->waiting->per_rank[2].state == RankTurn::gone);
  CHECK(first_failure_text(*first) == "rank 2 failed first, in step 3: it was ended by SIGKILL");
  CHECK(then_waited_text(*first) == "ranks 0, 1 then waited in all_reduce 2, entered from train.py:20");
}

TEST_CASE("a rank that was asked to end after it had run to its end did not wait and did not fail") {
  JobOfThree job;
  enter_all(job, {});
  for (int rank = 0; rank < 2; ++rank) {
    job.enter(rank, {.number = 2, .state = CollectiveState::failed, .line = 20});
    job.raise(rank, "RuntimeError", 130, kLostPeer);
  }
  job.kill(2, SIGTERM, 131);
  job.process(2).info[std::string(trace::kGroupsLeftKey)] = "0";
  job.read();

  const auto first = job.first_failure();
  REQUIRE(first);
  CHECK(first->missing == std::vector{2});
  REQUIRE(first->waiting);
  CHECK(first->waiting->per_rank[2].state == RankTurn::gone);
  CHECK(first_failure_text(*first) ==
        "rank 2 never entered all_reduce 2, which ranks 0, 1 waited in: it had run to its end");
}

TEST_CASE("ranks that were killed because another had failed did not fail first") {
  JobOfThree job;
  job.raise(1, "ValueError", 130);
  job.kill(0, SIGTERM, 130);
  job.kill(2, SIGKILL, 161);
  job.read();
  const auto first = job.first_failure();
  REQUIRE(first);
  CHECK(first->rank == 1);
  CHECK(first->what == "raised ValueError: no more");
}

// What became of each rank: the rank after whose failure it was ended, or -1.
std::vector<int> ended_after(const JobOfThree& job) {
  std::vector<Process> processes = job.processes();
  tell_ended_after(processes, job.logs(), job.logs().clocks());
  std::vector<int> told;
  for (const Process& process : processes) told.push_back(process.ended_after.value_or(-1));
  return told;
}

TEST_CASE(
    "ranks without an end, and those asked to end, were ended after the rank that failed, whoever was told of it") {
  const bool launcher_tells = GENERATE(false, true);
  JobOfThree job;
  enter_all(job, {});
  job.raise(1, "ValueError", 130);
  job.enter(0, {.number = 2, .state = CollectiveState::failed});
  job.raise(0, "RuntimeError", 131, kLostPeer);
  for (const int rank : {0, 2}) {
    if (launcher_tells) {
      job.kill(rank, SIGTERM, 132);
    } else {
      job.process(rank).close = CloseMark::open;
    }
  }
  job.read();
  CHECK(ended_after(job) == std::vector{1, -1, 1});
  const auto first = job.first_failure();
  REQUIRE(first);
  CHECK(first->rank == 1);
}

TEST_CASE("a rank that crashed, or that may be what the others lost, was not ended after another") {
  JobOfThree job;
  enter_all(job, {});
  for (int rank = 0; rank < 3; ++rank) {
    job.enter(rank, {.number = 2, .state = rank == 1 ? CollectiveState::entered : CollectiveState::failed});
  }
  const bool crashed = GENERATE(false, true);
  job.process(1).close = CloseMark::open;
  if (crashed) job.kill(1, SIGSEGV, 131);
  job.raise(0, "RuntimeError", 130, kLostPeer);
  job.raise(2, "RuntimeError", 130, kLostPeer);
  job.read();
  CHECK(ended_after(job) == std::vector{-1, -1, -1});
}

TEST_CASE("a rank that still runs was not ended") {
  JobOfThree job;
  job.raise(1, "ValueError", 130);
  job.process(0).close = CloseMark::open;
  job.process(0).ended = false;
  job.read();
  CHECK(ended_after(job) == std::vector{-1, -1, -1});
}

TEST_CASE(
    "of a rank that was killed the last operator is told, and the last line of the program where that is another") {
  JobOfThree job;
  enter_all(job, {});
  job.kill(2, SIGKILL, 133);
  Thread& main = job.ran(2, "aten::add", "/srv/train.py", 7);
  main.last_own = main.last[0].at;
  const bool in_library = GENERATE(false, true);
  if (in_library) {
    main.last[0].at.file = "/usr/lib/python3/dist-packages/torch/optim/adam.py";
    main.last[0].at.line = 794;
  }
  job.read();
  const auto first = job.first_failure();
  REQUIRE(first);
  CHECK(first->where->line == 7);
  CHECK(first_failure_text(*first) ==
        std::string("rank 2 failed first, in step 3: it was ended by SIGKILL; its last operator was at ") +
            (in_library ? "adam.py:794, the program's own last one at train.py:7" : "train.py:7"));
}

// Ranks 0 and 1 wait for rank 2 until rank 0 gives up, and is gone a second later.
void give_up(JobOfThree& job) {
  enter_all(job, {});
  for (int rank = 0; rank < 2; ++rank) {
    job.enter(rank, {.number = 2, .state = CollectiveState::failed});
    job.raise(rank, "RuntimeError", 130 + rank, "Timed out waiting 30000ms");
    job.process(rank).ended_ns = 131 * kSecond;
  }
}

TEST_CASE("a rank that leaves since it was asked to end did not fail first: it is what the others waited for") {
  const int status = GENERATE(128 + SIGTERM, 128 + SIGINT, 128 + SIGHUP, 1);
  JobOfThree job;
  give_up(job);
  job.leave(2, status, 132);
  job.ran(2, "aten::add", "/srv/data.py", 7);
  job.read();
  const std::vector<Finding> findings = job.findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].kind == Kind::collective_hang);
  const auto first = job.first_failure();
  REQUIRE(first);
  CHECK(first->rank == 0);
  CHECK(first->missing == std::vector{2});
  CHECK(first_failure_text(*first) ==
        "rank 2 never entered all_reduce 2, which ranks 0, 1 waited in; it was last seen at data.py:7");
}

TEST_CASE("a rank that leaves while the others are still there, or for an error of its own, failed first") {
  const bool had_error = GENERATE(false, true);
  JobOfThree job;
  give_up(job);
  job.leave(2, 1, had_error ? 132 : 130);
  if (had_error) job.process(2).first_error_ns = 100 * kSecond;
  job.read();
  CHECK(job.findings().empty());
  const auto first = job.first_failure();
  REQUIRE(first);
  CHECK(first->rank == 2);
  CHECK(first->what == "left with status 1");
}

TEST_CASE("a member that left no trace, or ran nothing, is what the others waited for") {
  const bool has_trace = GENERATE(false, true);
  JobOfThree job;
  for (int rank = 0; rank < 2; ++rank) {
    job.enter(rank, {.state = CollectiveState::failed});
    job.raise(rank, "RuntimeError", 130 + rank, kLostPeer);
  }
  if (has_trace) {
    job.process(2).operators = 0;
  } else {
    job.lose(2);
  }
  job.read();
  CHECK(job.findings().empty());
  const auto first = job.first_failure();
  REQUIRE(first);
  CHECK(first->rank == 0);
  CHECK(first->missing == std::vector{2});
  REQUIRE(first->waiting);
  REQUIRE(first->waiting->per_rank.size() == 3);
  CHECK(first->waiting->per_rank[2].state == (has_trace ? RankTurn::never_entered : RankTurn::no_trace));
  CHECK(first_failure_text(*first) == (has_trace ? "rank 2 never entered all_reduce 1, which ranks 0, 1 waited in"
                                                 : "rank 2 left no trace here; ranks 0, 1 waited in all_reduce 1"));
  CHECK(then_waited_text(*first).starts_with("rank 0 was the first to give up, in step 3: it raised RuntimeError"));
}

TEST_CASE("a rank that failed on its own failed first, also beside a member without a trace") {
  JobOfThree job;
  job.enter(1, {.state = CollectiveState::failed});
  job.raise(0, "ValueError", 120);
  job.raise(1, "RuntimeError", 130, kLostPeer);
  job.lose(2);
  job.read();
  const auto first = job.first_failure();
  REQUIRE(first);
  CHECK(first->rank == 0);
  CHECK(first->missing.empty());
}

TEST_CASE("an attempt that failed before its first collective counts, rather than the one before it") {
  JobOfThree job;
  enter_all(job, {});
  for (int rank = 0; rank < 2; ++rank) {
    job.enter(rank, {.number = 2, .state = CollectiveState::issued});
    job.kill(rank, SIGTERM, 121);
  }
  job.raise(2, "OutOfMemoryError", 120);
  for (int rank = 0; rank < 3; ++rank) {
    job.restart(rank, 200);
    if (rank == 2) continue;
    job.join(rank);
    job.enter(rank, {.state = CollectiveState::issued, .entered_s = 210});
    job.kill(rank, SIGTERM, 221);
  }
  job.raise(2, "FileNotFoundError", 215);
  job.read();
  CHECK(job.findings().empty());
  const auto first = job.first_failure();
  REQUIRE(first);
  CHECK(first->rank == 2);
  CHECK(first->what == "raised FileNotFoundError: no more");
  CHECK(then_waited_text(*first) == "ranks 0, 1 then waited in all_reduce 1, entered from train.py:10");
}

TEST_CASE(
    "an attempt before the newest is told with the rank that failed first in it, not with one that lost its peer") {
  JobOfThree job;
  enter_all(job, {});
  job.raise(0, "RuntimeError", 129, kLostPeer);
  job.raise(1, "ValueError", 130);
  for (int rank = 0; rank < 3; ++rank) {
    job.process(rank).attempt = 0;
    job.restart(rank, 200);
    job.join(rank);
    job.enter(rank, {.entered_s = 210});
    job.process(rank).attempt = 1;
  }
  job.raise(2, "KeyError", 220);
  job.read();

  std::vector<Process> processes = job.processes();
  const std::vector<EarlierFailure> earlier = tell_ended_after(processes, job.logs(), job.logs().clocks());
  REQUIRE(earlier.size() == 1);
  CHECK(earlier.front().attempt == 0);
  CHECK(earlier_failure_text(earlier.front()) ==
        "in attempt 0 rank 1 failed first, in step 3: it raised ValueError: no more");
}

TEST_CASE("of many attempts that failed, the newest five are told") {
  std::vector<EarlierFailure> earlier;
  for (int attempt = 0; attempt < 7; ++attempt) {
    FirstFailure failure;
    failure.rank = 3;
    failure.step = 12;
    failure.what = "left with status 1";
    earlier.push_back({attempt, failure});
  }
  const std::vector<std::string> texts = earlier_failure_texts(earlier);
  REQUIRE(texts.size() == 6);
  CHECK(texts.front() == "2 earlier attempts failed, too");
  CHECK(texts[1] == "in attempt 2 rank 3 failed first, in step 12: it left with status 1");
}

TEST_CASE("who was ended after whom is told by common times, too") {
  constexpr std::int64_t kAhead = 50;
  JobOfThree job;
  job.enter_by_two_clocks(kAhead);
  job.raise(0, "ValueError", 150);
  job.raise(2, "ValueError", 145 + kAhead);
  job.kill(1, SIGTERM, 151);
  job.read();
  CHECK(ended_after(job) == std::vector{-1, 2, -1});
}

TEST_CASE("clocks of hosts are compared by what no rank can have finished before another had entered it") {
  for (const std::int64_t ahead : {0, 50}) {
    JobOfThree job;
    job.enter_by_two_clocks(ahead);
    job.raise(0, "ValueError", 150);
    job.raise(2, "ValueError", 145 + ahead);
    job.read();
    CHECK(job.logs().clocks().offsets.at("other") == -ahead * kSecond);
    const auto first = job.first_failure();
    REQUIRE(first);
    CHECK(first->rank == 2);
    CHECK(first->time_ns == 145 * kSecond);
  }
}

}  // namespace
}  // namespace devsan::report
