// The records of collectives and of what ended the program. What changes in place is under no checksum: it is checked
// here.
#include <algorithm>
#include <cstring>

#include "trace/reader_loader.h"
#include "trace/record_reading.h"

namespace devsan::trace {
namespace {

// Several times as many as any job has had.
constexpr std::int32_t kMostRanks = 1 << 18;

// False where it says nothing that could be used.
bool make_sound(CollectiveEntry& entry) {
  if (entry.state == CollectiveState::none || entry.state > CollectiveState::failed) return false;
  if (entry.facts.phase > Phase::checkpoint) entry.facts.phase = Phase::other;
  return true;
}

}  // namespace

bool TraceFile::Loader::take_collective_ring(std::span<const std::byte> payload) {
  if (payload.size() != sizeof(CollectiveRingPayload)) return false;
  std::uint64_t next = 0;
  std::memcpy(&next, payload.data(), sizeof(next));
  // Threads that entered the first one at once have left rings behind that nobody used.
  if (next == 0) return true;
  file_.collectives_ = {next, {}};
  for (std::uint64_t back = 1; back <= std::min<std::uint64_t>(next, kCollectiveEntries); ++back) {
    const std::uint64_t number = next - back;
    const std::size_t at =
        offsetof(CollectiveRingPayload, entries) + number % kCollectiveEntries * sizeof(CollectiveEntry);
    auto entry = read<CollectiveEntry>(payload.subspan(at));
    // Of several threads some may not be done with theirs.
    if (entry.number != static_cast<std::uint32_t>(number) + 1) continue;
    if (make_sound(entry)) file_.collectives_.last.push_back(entry);
  }
  return true;
}

bool TraceFile::Loader::take_long_wait(std::span<const std::byte> payload) {
  if (payload.size() != sizeof(CollectiveEntry)) return false;
  auto entry = read<CollectiveEntry>(payload);
  if (!make_sound(entry)) return false;
  file_.long_waits_.push_back(entry);
  return true;
}

bool TraceFile::Loader::take_collective_group(std::span<const std::byte> payload) {
  CollectiveGroup group;
  if (payload.size() < sizeof(group.fixed)) return false;
  group.fixed = read<CollectiveGroupPayload>(payload);
  auto rest = payload.subspan(sizeof(group.fixed));
  if (rest.size() / sizeof(std::int32_t) < group.fixed.ranks || group.fixed.size > kMostRanks) return false;
  // Where its ranks are not listed, they may be all that there are.
  if (!file_.make(sizeof(std::int32_t) * static_cast<std::uint64_t>(std::max(group.fixed.size, 0)))) return false;
  group.ranks = take<std::int32_t>(rest, group.fixed.ranks);
  file_.collective_groups_.push_back(std::move(group));
  return true;
}

}  // namespace devsan::trace
