// What the timeline of the page has of collectives.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "report/render/page_data.h"

namespace devsan::report {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

CollectiveCall call(std::string_view state, std::int64_t entered, std::int64_t wait, std::int64_t finished) {
  CollectiveCall one;
  one.name = "all_reduce";
  one.state = state;
  one.entered_ns = entered;
  one.wait_ns = wait;
  one.finished_ns = finished;
  return one;
}

// Begin and length in microseconds of the waits of a process that lived from the first to the ninth second.
Json waits_of(CollectiveCall one, std::int64_t ended = 9 * kSecond) {
  Run run;
  run.start_ns = kSecond;
  run.last_ns = 10 * kSecond;
  Process process;
  process.start_ns = kSecond;
  process.ended_ns = ended;
  process.last_collectives = {std::move(one)};
  run.processes.push_back(std::move(process));
  const Json waits = page_timeline(run)["waits"][0];
  return waits.is_null() ? waits : Json{waits["begin"][0], waits["length"][0]};
}

TEST_CASE("a wait in a collective that ended lasts from its begin to the end of the collective") {
  CHECK(waits_of(call("finished", 2 * kSecond, 3 * kSecond, 5 * kSecond)) == Json{2'000'000, 2'000'000});
}

TEST_CASE("a collective that ended well, and that nobody waited for, is no wait") {
  CHECK(waits_of(call("finished", 2 * kSecond, 0, 5 * kSecond)).is_null());
}

TEST_CASE("a collective that failed was waited for since it was entered, by whomever") {
  CHECK(waits_of(call("failed", 2 * kSecond, 0, 5 * kSecond)) == Json{1'000'000, 3'000'000});
}

TEST_CASE("a collective that never ended is waited for as long as the process lives") {
  CHECK(waits_of(call("entered", 2 * kSecond, 0, 0)) == Json{1'000'000, 7'000'000});
  CHECK(waits_of(call("entered", 2 * kSecond, 0, 0), 0) == Json{1'000'000, 8'000'000});
}

}  // namespace
}  // namespace devsan::report
