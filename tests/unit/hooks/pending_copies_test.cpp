#include "hooks/inprocess/events/pending_copies.h"

#include <catch2/catch.hpp>
#include <memory>
#include <utility>
#include <vector>

namespace devsan::hooks {
namespace {

constexpr StreamKey kMain{0, 0};
constexpr StreamKey kSide{0, 7};
constexpr StreamKey kOtherDevice{1, 0};

// Addresses that stand for storages and events.
char storages[256];
char events[4096];
Extent host(int k) {
  return {&storages[2 * k]};
}
Extent device(int k) {
  return {&storages[2 * k + 1]};
}
const void* event(int k) {
  return &events[16 * k];
}

std::unique_ptr<PendingCopies> fresh() {
  attention.store(0);
  return std::make_unique<PendingCopies>();
}

PendingCopy to_host(int k) {
  return {host(k), device(k), true, false, trace::SiteId{static_cast<std::uint32_t>(k + 1)}, 8};
}
PendingCopy to_device(int k) {
  PendingCopy copy = to_host(k);
  copy.to_host = false;
  return copy;
}

TEST_CASE("nothing needs attention while no copy is pending") {
  const auto copies = fresh();
  CHECK(attention.load() == 0);
  copies->queue(kMain, to_host(0));
  CHECK(attention.load() != 0);
  copies->host_saw_stream(kMain);
  CHECK(attention.load() == 0);
}

// What closes pages, as far as it is told to.
struct Call {
  char what;  // o: open, w: closed for writes, a: for all
  const void* block;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool operator==(const Call&) const = default;
};
std::vector<Call> calls;
constexpr PinnedPages kPages{[](const void* block, std::uint64_t begin, std::uint64_t end, bool for_writes) {
                               calls.push_back({for_writes ? 'w' : 'a', block, begin, end});
                               return true;
                             },
                             [](const void* block) {
                               calls.push_back({'o', block});
                             }};

alignas(8) char pinned[4096];

PendingCopy part(bool to_host, std::uint64_t begin, std::uint64_t end) {
  PendingCopy copy = to_host ? devsan::hooks::to_host(0) : to_device(0);
  copy.host.begin = begin;
  copy.host.end = end;
  copy.host_begin = pinned;
  return copy;
}

std::vector<Call> called() {
  return std::exchange(calls, {});
}

TEST_CASE("pages of memory that was given away are closed while a later copy of it is pending") {
  const auto copies = fresh();
  copies->close_pages_by(&kPages);
  copies->queue(kMain, part(true, 0, 64));
  CHECK(called().empty());  // nobody has its address
  copies->host_saw_stream(kMain);
  copies->queue(kMain, part(true, 0, 64));
  copies->give_away(pinned);
  CHECK(called().empty());  // what has it now may be a system call's
  copies->host_saw_stream(kMain);
  copies->queue(kMain, part(true, 64, 128));
  CHECK(called() == std::vector<Call>{{'a', pinned, 64, 128}});
  copies->queue(kSide, part(false, 0, 64));
  CHECK(called() == std::vector<Call>{{'w', pinned, 0, 64}, {'a', pinned, 64, 128}});
  copies->host_saw_stream(kSide);
  CHECK(called() == std::vector<Call>{{'o', pinned}, {'a', pinned, 64, 128}});
  copies->host_saw_stream(kMain);
  CHECK(called() == std::vector<Call>{{'o', pinned}});
  CHECK(attention.load() == 0);
}

TEST_CASE("a touch of closed pages collides with the copy whose bytes it met") {
  const auto copies = fresh();
  copies->close_pages_by(&kPages);
  copies->give_away(pinned);
  copies->queue(kMain, part(true, 0, 64));
  copies->queue(kSide, part(false, 128, 192));
  called();
  CHECK_FALSE(copies->hit_by_touch(pinned + 100, true));   // between them
  CHECK_FALSE(copies->hit_by_touch(pinned + 128, false));  // a source is read
  CHECK(called().empty());
  const auto read = copies->hit_by_touch(pinned + 63, false);
  REQUIRE(read);
  CHECK(read->to_host);
  CHECK(called() == std::vector<Call>{{'o', pinned}, {'w', pinned, 128, 192}});
  CHECK_FALSE(copies->hit_by_touch(pinned + 63, false));  // told of once
  const auto written = copies->hit_by_touch(pinned + 191, true);
  REQUIRE(written);
  CHECK_FALSE(written->to_host);
  CHECK(attention.load() == 0);
}

TEST_CASE("pages of memory that dies, or is another process's by now, are left to who closed them") {
  const auto copies = fresh();
  copies->close_pages_by(&kPages);
  copies->give_away(pinned);
  copies->queue(kMain, part(true, 0, 64));
  called();
  copies->forget_storage(host(0).storage);
  copies->forget_storage(device(0).storage);
  CHECK(attention.load() == 0);
  copies->queue(kMain, part(true, 0, 64));
  called();
  copies->reset_after_fork();
  copies->host_saw_stream(kMain);
  CHECK(called().empty());
}

TEST_CASE("a reader that only has an address collides with the bytes of a copy's target") {
  const auto copies = fresh();
  alignas(8) static char memory[64];
  PendingCopy copy = to_host(0);
  copy.host.begin = 16;
  copy.host.end = 32;
  copy.host_begin = memory;
  copies->queue(kSide, copy);
  CHECK_FALSE(copies->hit_by_reader(memory, 16));
  CHECK_FALSE(copies->hit_by_reader(memory + 32, 32));
  CHECK_FALSE(copies->hit_by_reader(memory - 8, 8));
  const auto hit = copies->hit_by_reader(memory + 8, 16);
  REQUIRE(hit);
  CHECK(hit->site == trace::SiteId{1});
  CHECK(attention.load() == 0);  // told of once

  copy = to_device(0);
  copy.host_begin = memory;
  copies->queue(kSide, copy);
  CHECK_FALSE(copies->hit_by_reader(memory, 64));  // reading the source does no harm
  copies->host_saw_stream(kSide);
}

TEST_CASE("the host collides with the target of a copy until it has waited for the copy's stream") {
  const auto copies = fresh();
  copies->queue(kSide, to_host(0));
  copies->host_saw_stream(kMain);
  copies->host_saw_device(1);
  const auto hit = copies->hit_by_host(host(0), false);
  REQUIRE(hit);
  CHECK(hit->site == trace::SiteId{1});
  CHECK_FALSE(copies->hit_by_host(host(0), false));  // told of once

  copies->queue(kSide, to_host(0));
  copies->host_saw_stream(kSide);
  CHECK_FALSE(copies->hit_by_host(host(0), true));
  copies->queue(kSide, to_host(0));
  copies->host_saw_device(0);
  CHECK_FALSE(copies->hit_by_host(host(0), true));
}

TEST_CASE("the source of a copy may be read, and not be written") {
  const auto copies = fresh();
  copies->queue(kMain, to_device(0));
  CHECK_FALSE(copies->hit_by_host(host(0), false));
  CHECK(copies->hit_by_host(host(0), true));
  copies->queue(kMain, to_host(1));
  CHECK_FALSE(copies->hit_by_stream(device(1), kSide, false));
  CHECK(copies->hit_by_stream(device(1), kSide, true));
}

TEST_CASE("an event covers the copies before it, and none behind it") {
  const auto copies = fresh();
  copies->queue(kMain, to_host(0));
  copies->record_event(event(0), kMain);
  copies->queue(kMain, to_host(1));
  copies->host_saw_event(event(0));
  CHECK_FALSE(copies->hit_by_host(host(0), false));
  CHECK(copies->hit_by_host(host(1), false));
}

TEST_CASE("an event that was recorded anew covers what it covers now") {
  const auto copies = fresh();
  copies->record_event(event(0), kMain);
  copies->queue(kMain, to_host(0));
  copies->host_saw_event(event(0));
  CHECK(copies->hit_by_host(host(0), false));
  copies->queue(kMain, to_host(0));
  copies->record_event(event(0), kMain);
  copies->host_saw_event(event(0));
  CHECK_FALSE(copies->hit_by_host(host(0), false));
}

TEST_CASE("a stream comes after a copy when it waits for an event behind it, directly or through another stream") {
  const auto copies = fresh();
  copies->queue(kSide, to_device(0));
  CHECK_FALSE(copies->hit_by_stream(device(0), kSide, true));
  copies->record_event(event(0), kSide);
  copies->wait_event(kOtherDevice, event(0));
  copies->record_event(event(1), kOtherDevice);
  copies->wait_event(kMain, event(1));
  CHECK_FALSE(copies->hit_by_stream(device(0), kMain, true));
  CHECK(copies->hit_by_stream(device(0), {0, 9}, false));

  copies->queue(kSide, to_host(1));
  copies->record_event(event(0), kSide);
  copies->wait_event(kMain, event(0));
  copies->host_saw_stream(kMain);  // and so for what it waited for
  CHECK_FALSE(copies->hit_by_host(host(1), false));
}

TEST_CASE("what is not known of an event counts as a wait for everything") {
  const auto copies = fresh();
  copies->queue(kMain, to_host(0));
  copies->host_saw_event(event(5));
  CHECK_FALSE(copies->hit_by_host(host(0), false));
  copies->record_event(event(1), kMain);
  copies->queue(kMain, to_host(0));
  copies->forget_event(event(1));
  copies->host_saw_event(event(1));
  CHECK_FALSE(copies->hit_by_host(host(0), false));
}

TEST_CASE("a storage that dies is never taken for a later one at its address") {
  const auto copies = fresh();
  copies->queue(kMain, to_host(0));
  copies->forget_storage(device(0).storage);
  CHECK(copies->hit_by_host(host(0), false));  // a temporary on the device changes nothing for the host
  copies->queue(kMain, to_host(0));
  copies->forget_storage(host(0).storage);
  CHECK_FALSE(copies->hit_by_host(host(0), false));
  copies->forget_storage(device(0).storage);
  CHECK(attention.load() == 0);
}

TEST_CASE("slots of one buffer do not collide with each other's copies") {
  const auto copies = fresh();
  const auto slot = [](std::uint64_t k) { return Extent{&storages[0], 16 * k, 16 * (k + 1)}; };
  for (std::uint64_t k = 0; k < 3; ++k) {
    PendingCopy copy = to_host(0);
    copy.host = slot(k);
    copies->queue(kMain, copy);
    copies->record_event(event(static_cast<int>(k)), kMain);
  }
  copies->host_saw_event(event(0));
  CHECK_FALSE(copies->hit_by_host(slot(0), false));
  CHECK_FALSE(copies->hit_by_host(slot(3), true));
  CHECK_FALSE(copies->hit_by_copy(slot(3), kSide, true));
  CHECK(copies->hit_by_host(slot(1), false));
  CHECK(copies->hit_by_host({&storages[0]}, false));  // of the whole buffer
}

TEST_CASE("of too many copies the oldest are forgotten, and their waits are not mixed up") {
  const auto copies = fresh();
  copies->queue(kMain, to_host(0));
  copies->record_event(event(0), kMain);
  for (unsigned k = 0; k < PendingCopies::kCopies; ++k) copies->queue(kSide, to_host(1 + static_cast<int>(k)));
  CHECK_FALSE(copies->hit_by_host(host(0), false));
  copies->host_saw_event(event(0));  // of the copy that was forgotten, whose place another has taken
  CHECK(copies->hit_by_host(host(62), false));
}

TEST_CASE("a copy collides with a pending one of another stream, and not of its own") {
  const auto copies = fresh();
  copies->queue(kSide, to_host(0));
  CHECK_FALSE(copies->hit_by_copy(host(0), kSide, true));
  CHECK(copies->hit_by_copy(host(0), kMain, false));
  copies->queue(kSide, to_device(0));
  CHECK_FALSE(copies->hit_by_copy(host(0), kMain, false));
  CHECK(copies->hit_by_copy(host(0), kMain, true));
}

}  // namespace
}  // namespace devsan::hooks
