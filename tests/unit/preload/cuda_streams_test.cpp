// What is known of streams and events by the calls that passed by.
#include "preload/cuda_streams.h"

#include <catch2/catch.hpp>
#include <memory>

namespace devsan::cuda {
namespace {

constexpr StreamArgument kDefault{0, false};
constexpr StreamArgument kOwn{0x5000, false};
constexpr StreamArgument kOther{0x5010, false};
constexpr std::uint64_t kEvent = 0x7100;

// They are too large for the stack.
std::unique_ptr<Streams> new_streams() {
  return std::make_unique<Streams>();
}

TEST_CASE("only streams that wait for nothing implicitly have names of their own") {
  const auto streams = new_streams();
  streams->created(kOwn.handle, 1, true);
  streams->created(kOther.handle, 1, false);
  CHECK(streams->name_of(kOwn, 0).stream == kOwn.handle);
  CHECK(streams->name_of(kOwn, 0).device == 1);
  CHECK(streams->name_of(kOther, 0).stream == 0);
  CHECK(streams->name_of(kOther, 0).device == 1);
  CHECK(streams->name_of(kDefault, 3).device == 3);
  CHECK(streams->name_of({1, false}, 2).stream == 0);
  CHECK(streams->name_of({2, false}, 2).device == 2);
}

TEST_CASE("a stream that nobody saw being made belongs to the device of its first use") {
  const auto streams = new_streams();
  CHECK(streams->name_of(kOwn, -1).device == -1);
  CHECK(streams->name_of(kOwn, 2).device == 2);
  CHECK(streams->name_of(kOwn, 0).device == 2);
  CHECK(streams->name_of(kOwn, 0).stream == 0);
  streams->destroyed(kOwn.handle);
  CHECK(streams->name_of(kOwn, 1).device == 1);
}

TEST_CASE("an event belongs to the device of the stream that it was recorded in last") {
  const auto streams = new_streams();
  CHECK(streams->device_of_event(kEvent) == -1);
  streams->recorded(kEvent, kOwn, 1);
  CHECK(streams->device_of_event(kEvent) == 1);
  streams->recorded(kEvent, kOther, 2);
  CHECK(streams->device_of_event(kEvent) == 2);
  streams->event_destroyed(kEvent);
  CHECK(streams->device_of_event(kEvent) == -1);
}

TEST_CASE("streams take part in a capture by events, until it ends where it began") {
  const auto streams = new_streams();
  streams->created(kOwn.handle, 0, true);
  streams->created(kOther.handle, 0, true);
  streams->capture_begins();
  streams->capture_began(kOwn);
  CHECK(streams->any_captured());
  CHECK(streams->is_captured(kOwn));
  CHECK_FALSE(streams->is_captured(kOther));
  CHECK_FALSE(streams->is_captured(kDefault));
  streams->recorded(kEvent, kOwn, 0);
  streams->waits_for(kOther, kEvent);
  CHECK(streams->is_captured(kOther));
  streams->capture_ended(kOther);  // refused by the driver
  CHECK(streams->any_captured());
  streams->capture_ended(kOwn);
  CHECK_FALSE(streams->any_captured());
  CHECK_FALSE(streams->is_captured(kOther));
  CHECK(streams->name_of(kOther, 1).device == 0);
  streams->waits_for(kOther, kEvent);  // of a capture that is over
  CHECK_FALSE(streams->is_captured(kOther));
}

TEST_CASE("a capture that did not begin leaves the others as they are") {
  const auto streams = new_streams();
  streams->capture_begins();
  streams->capture_began(kOwn);
  streams->capture_begins();
  streams->capture_failed();
  CHECK(streams->is_captured(kOwn));
  streams->capture_ended(kOwn);
  streams->capture_failed();
  CHECK_FALSE(streams->any_captured());
}

TEST_CASE("two captures at a time end one by one") {
  const auto streams = new_streams();
  for (const StreamArgument stream : {kOwn, kOther}) {
    streams->capture_begins();
    streams->capture_began(stream);
  }
  streams->capture_ended(kOwn);
  CHECK_FALSE(streams->is_captured(kOwn));
  CHECK(streams->is_captured(kOther));
  CHECK(streams->any_captured());
}

TEST_CASE("a full table forgets handles, and never takes one for another") {
  auto table = std::make_unique<HandleTable<64>>();
  for (std::uint64_t handle = 1; handle <= 1000; ++handle) {
    table->set(handle << 4, static_cast<std::uint16_t>(handle % 500 + 1));
    CHECK(table->get(handle << 4) == handle % 500 + 1);
  }
  int known = 0;
  for (std::uint64_t handle = 1; handle <= 1000; ++handle) {
    const std::uint16_t bits = table->get(handle << 4);
    CHECK((bits == 0 || bits == handle % 500 + 1));
    known += bits != 0;
  }
  CHECK(known > 32);
  CHECK(known <= 64);
}

}  // namespace
}  // namespace devsan::cuda
