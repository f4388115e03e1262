#include "hooks/inprocess/events/early_ends.h"

#include <catch2/catch.hpp>
#include <cstdint>

namespace devsan::hooks {
namespace {

const void* event_at(std::uintptr_t address) {
  return reinterpret_cast<const void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

TEST_CASE("an event that is found complete while the call that recorded it has not returned is remembered") {
  EarlyEnds ends;
  ends.begin();
  ends.forget(event_at(0x5000));
  CHECK(!ends.has(event_at(0x5000)));
  ends.note(event_at(0x5000));
  CHECK(ends.has(event_at(0x5000)));
  CHECK(!ends.has(event_at(0x5010)));
}

TEST_CASE("an event that is recorded again has not ended yet") {
  EarlyEnds ends;
  ends.begin();
  ends.note(event_at(0x5000));
  ends.forget(event_at(0x5000));
  CHECK(!ends.has(event_at(0x5000)));
}

TEST_CASE("events of a program that is in no collective are not kept") {
  EarlyEnds ends;
  ends.note(event_at(0x5000));
  CHECK(!ends.has(event_at(0x5000)));
  ends.begin();
  ends.end();
  ends.note(event_at(0x5000));
  CHECK(!ends.has(event_at(0x5000)));
}

}  // namespace
}  // namespace devsan::hooks
