// Which of the processes with a rank's number is that rank, in whichever order their traces come.
#include "report/findings/rank_processes.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace devsan::report {
namespace {

const std::string kTrain = "python train.py";
const std::string kOther = "python convert.py";

// A worker that entered collectives from the tenth to the hundredth second.
RankProcess worker() {
  return {"host", 10, 1, &kTrain, 10, 100, true};
}

// The pid of the rank, which no order of the processes changes.
std::uint32_t rank_among(std::vector<RankProcess> processes) {
  std::ranges::sort(processes, {}, &RankProcess::pid);
  std::uint32_t chosen = 0;
  do {
    RankProcesses rank;
    std::uint32_t last = 0;
    for (const RankProcess& one : processes) {
      if (rank.add(one)) last = one.pid;
    }
    if (chosen == 0) chosen = last;
    CHECK(last == chosen);
  } while (std::ranges::next_permutation(processes, {}, &RankProcess::pid).found);
  return chosen;
}

TEST_CASE("a later attempt is the rank, also where it has entered no collective") {
  CHECK(rank_among({worker(), {"host", 20, 1, &kTrain, 110, 120, true}}) == 20);
  CHECK(rank_among({worker(), {"host", 20, 1, &kTrain, 110, 120, false}}) == 20);
}

TEST_CASE("children of a worker are not the rank, also those of its children") {
  CHECK(rank_among({worker(), {"host", 20, 10, &kTrain, 50, 120, false}}) == 10);
  CHECK(rank_among(
            {worker(), {"host", 20, 10, &kTrain, 50, 60, false, true}, {"host", 30, 20, &kTrain, 55, 120, false}}) ==
        10);
}

TEST_CASE("children of the newest attempt are not the rank either") {
  CHECK(rank_among({worker(),
                    {"host", 20, 10, &kTrain, 50, 60, false},
                    {"host", 30, 1, &kTrain, 110, 120, false},
                    {"host", 40, 30, &kTrain, 115, 130, false}}) == 30);
}

TEST_CASE("a process that only starts the one that enters collectives is not the rank") {
  CHECK(rank_among({{"host", 5, 1, &kOther, 5, 200, false}, {"host", 10, 5, &kTrain, 10, 100, true}}) == 10);
}

TEST_CASE("what runs beside a worker, or is another program, is not the rank unless it enters collectives") {
  CHECK(rank_among({worker(), {"host", 20, 9, &kTrain, 50, 60, false}}) == 10);
  CHECK(rank_among({worker(), {"host", 20, 1, &kOther, 110, 120, false}}) == 10);
  CHECK(rank_among({worker(), {"host", 20, 1, &kOther, 110, 120, true}}) == 20);
}

TEST_CASE("a process that ran nothing is no rank, unless it is a later attempt") {
  RankProcess idle{"host", 20, 1, &kTrain, 110, 110, false, true};
  RankProcesses rank;
  CHECK_FALSE(rank.add(idle));
  CHECK(rank.add(worker()));
  CHECK(rank.add(idle));
}

TEST_CASE("a pid that comes again is another process") {
  RankProcesses rank;
  CHECK(rank.add(worker()));
  RankProcess again = worker();
  again.start_ns = 110;
  again.enters = false;
  CHECK(rank.add(again));
}

}  // namespace
}  // namespace devsan::report
