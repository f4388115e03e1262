// What is made of the ranks' collectives: hangs, mismatches, and who failed first, also with several groups and hosts.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <memory>

#include "report/findings/build_collectives.h"
#include "report/wording/collective_text.h"
#include "trace/collective_ring.h"
#include "trace_builder.h"

namespace devsan::report {
namespace {

using Catch::Matchers::Contains;
using trace::CloseMark;
using trace::CollectiveState;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::uint32_t kAll = 1;
constexpr std::uint32_t kPair = 2;

struct Entered {
  std::uint32_t group = kAll;
  std::uint64_t number = 1;
  CollectiveState state = CollectiveState::finished;
  const char* op = "c10d::allreduce_";
  std::uint64_t bytes = 16;
  int line = 10;
  std::int64_t entered_s = 100;
  std::int64_t finished_s = 101;
};

// Three ranks, each with a trace; `kPair` is a group of the first two.
class JobOfThree {
 public:
  JobOfThree() {
    for (int rank = 0; rank < 3; ++rank) {
      Rank& one = ranks_[rank];
      one.builder = std::make_unique<TraceBuilder>(directory_.path(), rank);
      one.ring = one.builder->recorder().add_collective_ring();
      group(rank, kAll, "0", {0, 1, 2});
      if (rank < 2) group(rank, kPair, "1", {0, 1});
      Process& process = one.process;
      process.pid = static_cast<std::uint32_t>(100 + rank);
      process.rank = rank;
      process.host = "host";
      process.operators = 5;
      process.steps = 4;
      process.start_ns = kSecond;
      process.close = CloseMark::exited;
      process.ended = true;
    }
  }

  void enter(int rank, const Entered& entered) {
    TraceBuilder& builder = *ranks_[rank].builder;
    trace::CollectiveFacts facts{};
    facts.entered_ns = entered.entered_s * kSecond;
    facts.sequence = entered.number;
    facts.bytes = entered.bytes;
    facts.group = entered.group;
    facts.site = builder.site({"/srv/train.py", entered.line, "train"});
    facts.dtype = builder.recorder().intern_string("float32");
    facts.op = builder.recorder().add_operator(entered.op);
    facts.device = builder.recorder().intern_device("cuda:" + std::to_string(rank));
    const trace::CollectiveRef collective = trace::enter_collective(ranks_[rank].ring, facts, 0);
    if (entered.state == CollectiveState::entered) return;
    trace::issued(collective, 0);
    if (entered.state != CollectiveState::issued) trace::ended(collective, entered.state, entered.finished_s * kSecond);
  }

  // What a rank records of itself when `--hang-after` is over: `in` is the number plus 1 of the collective that it is
  // in.
  void notice(int rank, std::int64_t at_s, std::uint64_t in) {
    TraceBuilder& builder = *ranks_[rank].builder;
    trace::WaitingStackPayload moment{};
    moment.time_ns = at_s * kSecond;
    moment.collective = in;
    builder.recorder().add_waiting_stack(moment, {});
    trace::FrameRecord frame{};
    frame.position.file = builder.recorder().intern_string("/srv/train.py");
    frame.position.line = 100 + rank;
    builder.recorder().add_waiting_stack(moment, std::vector{frame});
  }

  // As the watching thread does once a long wait is over.
  void keep(int rank, std::uint64_t number) {
    const trace::CollectiveRef collective{ranks_[rank].ring, number};
    ranks_[rank].builder->recorder().add_long_wait(*trace::entry_of(collective));
  }

  // An exception that nothing caught.
  void raise(int rank, const char* type, std::int64_t at_s, const char* message = "no more") {
    TraceBuilder& builder = *ranks_[rank].builder;
    trace::FailurePayload failure{};
    failure.time_ns = at_s * kSecond;
    failure.type = builder.recorder().intern_string(type);
    failure.message = builder.recorder().intern_string(message);
    failure.step = 3;
    builder.recorder().add_failure(failure, {});
  }

  void kill(int rank, int signal, std::int64_t at_s) {
    Process& process = ranks_[rank].process;
    process.close = CloseMark::open;
    process.ending = Ending{signal, std::nullopt, std::nullopt, false};
    process.ended_ns = at_s * kSecond;
  }

  Process& process(int rank) { return ranks_[rank].process; }
  const std::vector<Process>& processes() const { return processes_; }

  void read() {
    for (Rank& rank : ranks_) {
      logs_.add(rank.builder->read(), rank.process);
      processes_.push_back(rank.process);
    }
  }
  std::vector<Finding> findings() { return build_collectives(processes_, logs_, troubles_of(processes_, logs_)); }
  std::optional<FirstFailure> first_failure() {
    return first_failure_of(processes_, logs_, troubles_of(processes_, logs_), findings());
  }
  const CollectiveLogs& logs() const { return logs_; }

 private:
  struct Rank {
    std::unique_ptr<TraceBuilder> builder;
    trace::CollectiveRingPayload* ring = nullptr;
    Process process;
  };

  void group(int rank, std::uint32_t index, const char* name, std::vector<std::int32_t> members) {
    trace::CollectiveGroupPayload fixed{};
    fixed.index = index;
    fixed.size = static_cast<std::int32_t>(members.size());
    fixed.name = ranks_[rank].builder->recorder().intern_string(name);
    ranks_[rank].builder->recorder().add_collective_group(fixed, members);
  }

  TemporaryDirectory directory_;
  std::array<Rank, 3> ranks_;
  std::vector<Process> processes_;
  CollectiveLogs logs_;
};

void enter_all(JobOfThree& job, const Entered& entered) {
  for (int rank = 0; rank < 3; ++rank) job.enter(rank, entered);
}

TEST_CASE("ranks that wait in a collective which another never entered are a hang, at the line of the other") {
  JobOfThree job;
  enter_all(job, {});
  for (int rank = 0; rank < 2; ++rank) {
    job.enter(rank, {.number = 2, .state = CollectiveState::failed, .line = 20});
    job.raise(rank, "RuntimeError", 130);
  }
  job.kill(2, SIGTERM, 131);
  Thread main{102, "MainThread", 9, {}};
  main.last.resize(1);
  main.last[0].op = "aten::add";
  main.last[0].at.file = "/srv/data.py";
  main.last[0].at.line = 7;
  job.process(2).threads = {main};
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

constexpr const char* kLostPeer = "[gloo/transport/tcp/pair.cc:537] Read error: Connection reset by peer";

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
  tell_ended_after(processes, job.logs());
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
  Thread main{102, "MainThread", 9, {}};
  main.last.resize(1);
  main.last[0].op = "aten::add";
  main.last[0].at.file = "/srv/train.py";
  main.last[0].at.line = 7;
  main.last_own = main.last[0].at;
  const bool in_library = GENERATE(false, true);
  if (in_library) {
    main.last[0].at.file = "/usr/lib/python3/dist-packages/torch/optim/adam.py";
    main.last[0].at.line = 794;
  }
  job.process(2).threads = {main};
  job.read();
  const auto first = job.first_failure();
  REQUIRE(first);
  CHECK(first->where->line == 7);
  CHECK(first_failure_text(*first) ==
        std::string("rank 2 failed first, in step 3: it was ended by SIGKILL; its last operator was at ") +
            (in_library ? "adam.py:794, the program's own last one at train.py:7" : "train.py:7"));
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

TEST_CASE("clocks of hosts are compared by what no rank can have finished before another had entered it") {
  for (const std::int64_t ahead : {0, 50}) {
    JobOfThree job;
    job.process(2).host = "other";
    for (std::uint64_t number = 1; number <= 3; ++number) {
      const auto at = static_cast<std::int64_t>(100 + 10 * number);
      for (int rank = 0; rank < 2; ++rank) job.enter(rank, {.number = number, .entered_s = at, .finished_s = at + 2});
      job.enter(2, {.number = number, .entered_s = at + ahead, .finished_s = at + ahead + 2});
    }
    job.raise(0, "ValueError", 150);
    job.raise(2, "ValueError", 145 + ahead);
    job.read();
    CHECK(job.logs().clock_offsets().at("other") == -ahead * kSecond);
    const auto first = job.first_failure();
    REQUIRE(first);
    CHECK(first->rank == 2);
    CHECK(first->time_ns == 145 * kSecond);
  }
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
