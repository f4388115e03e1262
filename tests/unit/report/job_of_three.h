// A job of three ranks with their traces, for tests of what is made of several ranks.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "report/findings/build_collectives.h"
#include "report/findings/build_run.h"
#include "trace/collective_ring.h"
#include "trace_builder.h"

namespace devsan::report {
inline constexpr std::int64_t kSecond = 1'000'000'000;
inline constexpr std::uint32_t kAll = 1;
inline constexpr std::uint32_t kPair = 2;

struct Entered {
  std::uint32_t group = kAll;
  std::uint64_t number = 1;
  trace::CollectiveState state = trace::CollectiveState::finished;
  const char* op = "c10d::allreduce_";
  std::uint64_t bytes = 16;
  int line = 10;
  std::int64_t entered_s = 100;
  std::int64_t finished_s = 101;
  bool end_told = true;
  bool awaited = false;  // by a thread, now
};

// Three ranks, each with a trace; `kPair` is a group of the first two.
class JobOfThree {
 public:
  JobOfThree() {
    for (int rank = 0; rank < 3; ++rank) {
      begin(rank, 1);
      join(rank);
    }
  }

  void join(int rank) {
    group(rank, kAll, "0", {0, 1, 2});
    if (rank < 2) group(rank, kPair, "1", {0, 1});
  }

  // The rank becomes another process, as launchers make one once a rank has failed. It has joined no group yet.
  void restart(int rank, std::int64_t at_s) {
    read(ranks_[rank]);
    begin(rank, at_s);
  }

  // The trace of the rank is not among those that are read.
  void lose(int rank) { ranks_[rank].lost = true; }

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
    if (entered.awaited) trace::wait_begins(collective, facts.entered_ns);
    if (entered.state == trace::CollectiveState::entered) return;
    trace::issued(collective, entered.end_told ? 0 : trace::kEndNotTold);
    if (entered.state != trace::CollectiveState::issued)
      trace::ended(collective, entered.state, entered.finished_s * kSecond);
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

  // The one operator that the rank's main thread is known to have run.
  Thread& ran(int rank, const char* op, const char* file, int line) {
    Thread main{static_cast<std::uint32_t>(100 + rank), "MainThread", 9, {}};
    main.last.resize(1);
    main.last[0].op = op;
    main.last[0].at.file = file;
    main.last[0].at.line = line;
    ranks_[rank].process.threads = {main};
    return ranks_[rank].process.threads.front();
  }

  // Three collectives of all ranks, ten seconds apart and two long; the clock of rank 2's host is that far ahead.
  void enter_by_two_clocks(std::int64_t ahead_s) {
    ranks_[2].process.host = "other";
    for (std::uint64_t number = 1; number <= 3; ++number) {
      for (int rank = 0; rank < 3; ++rank) {
        const auto at = static_cast<std::int64_t>(100 + 10 * number) + (rank == 2 ? ahead_s : 0);
        enter(rank, {.number = number, .entered_s = at, .finished_s = at + 2});
      }
    }
  }

  void kill(int rank, int signal, std::int64_t at_s) {
    Process& process = ranks_[rank].process;
    process.close = trace::CloseMark::open;
    process.ending = Ending{signal, std::nullopt, std::nullopt, false};
    process.ended_ns = at_s * kSecond;
  }

  void leave(int rank, int status, std::int64_t at_s) {
    Process& process = ranks_[rank].process;
    process.ending = Ending{0, status, std::nullopt, false};
    process.ended_ns = at_s * kSecond;
  }

  Process& process(int rank) { return ranks_[rank].process; }
  const std::vector<Process>& processes() const { return processes_; }

  void read() {
    for (Rank& rank : ranks_) {
      if (!rank.lost) read(rank);
    }
  }
  std::vector<Finding> findings() {
    const HostClocks clocks = logs_.clocks();
    const std::map<int, RankTrouble> troubles = troubles_of(processes_, logs_, clocks);
    return build_collectives(Stories(processes_, logs_, clocks, troubles));
  }
  std::optional<FirstFailure> first_failure() {
    const HostClocks clocks = logs_.clocks();
    const std::map<int, RankTrouble> troubles = troubles_of(processes_, logs_, clocks);
    const Stories stories(processes_, logs_, clocks, troubles);
    return first_failure_of(stories, build_collectives(stories));
  }
  const CollectiveLogs& logs() const { return logs_; }

  void group(int rank, std::uint32_t index, const char* name, std::vector<std::int32_t> members) {
    trace::CollectiveGroupPayload fixed{};
    fixed.index = index;
    fixed.size = static_cast<std::int32_t>(members.size());
    fixed.name = ranks_[rank].builder->recorder().intern_string(name);
    ranks_[rank].builder->recorder().add_collective_group(fixed, members);
  }

 private:
  struct Rank {
    std::unique_ptr<TraceBuilder> builder;
    trace::CollectiveRingPayload* ring = nullptr;
    Process process;
    bool lost = false;
  };

  void begin(int rank, std::int64_t at_s) {
    Rank& one = ranks_[rank];
    const std::filesystem::path directory = directory_.path() / std::to_string(at_s);
    std::filesystem::create_directories(directory);
    one.builder = std::make_unique<TraceBuilder>(directory, rank);
    one.ring = one.builder->recorder().add_collective_ring();
    one.process = {};
    Process& process = one.process;
    process.pid = static_cast<std::uint32_t>(100 + rank);
    process.rank = rank;
    process.host = "host";
    process.operators = 5;
    process.steps = 4;
    process.start_ns = at_s * kSecond;
    process.close = trace::CloseMark::exited;
    process.ended = true;
  }

  void read(Rank& rank) {
    const trace::TraceFile trace = rank.builder->read();
    rank.process.uncaught = uncaught_of(trace);
    logs_.add(trace, rank.process);
    processes_.push_back(rank.process);
  }

  TemporaryDirectory directory_;
  std::array<Rank, 3> ranks_;
  std::vector<Process> processes_;
  CollectiveLogs logs_;
};

inline void enter_all(JobOfThree& job, const Entered& entered) {
  for (int rank = 0; rank < 3; ++rank) job.enter(rank, entered);
}
// What Gloo says where the other end is gone.
inline constexpr const char* kLostPeer = "[gloo/transport/tcp/pair.cc:537] Read error: Connection reset by peer";

}  // namespace devsan::report
