// What the tensors of each operator and line keep, from census to census: those that keep most, and those that keep
// more and more, get a record in the trace.
#pragma once

#include <cstdint>

#include "trace/memory_layout.h"

namespace devsan::hooks {

// Takes a census of the live storages if one is due: what censuses cost in all stays below half a percent of the time.
// `sample` tells time and step, and in `used` what the process takes of the host, 0 where that was not looked at. One
// thread at a time, outside of every allocator; a forked child begins anew. Rounds are counted apart from all else, and
// only what operators have computed: whoever loads a model or data moves and makes one tensor after the other, and
// keeps them.
void take_site_census(trace::MemorySample sample, trace::SeriesClock clock) noexcept;

// Whether so many steps have gone by since the last census that this one is to have one, however short they are.
// Any thread; `now` is of CLOCK_MONOTONIC.
bool wants_census(std::uint32_t step, trace::SeriesClock clock, std::int64_t now) noexcept;

// Other rounds begin: what those before have kept did not go on for as long as the process, and is forgotten, in the
// trace as well. As take_site_census().
void begin_rounds() noexcept;

// Of a site whose tensors become more and more, as long as nobody knows what keeps them.
struct GrowingSite {
  trace::SiteId site;
  trace::OperatorId op;
  trace::DeviceSlot device;
  std::uint64_t count;  // of its storages at the last census
  trace::SiteMemoryPayload* series;
};

}  // namespace devsan::hooks
