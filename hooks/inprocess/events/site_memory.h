// What the tensors of each operator and line keep, from census to census: those that keep most, and those that keep
// more and more, get a record in the trace.
#pragma once

#include <cstdint>

#include "trace/memory_layout.h"

namespace devsan::hooks {

// Takes a census of the live storages if one is due: what censuses cost in all stays below half a percent of the time.
// `sample` tells time and step. One thread at a time, outside of every allocator; a forked child begins anew.
// Rounds are counted apart from all else.
void take_site_census(trace::MemorySample sample, trace::SeriesClock clock) noexcept;

// Whether so many steps have gone by since the last census that this one is to have one, however short they are.
// Any thread; `now` is of CLOCK_MONOTONIC.
bool wants_census(std::uint32_t step, trace::SeriesClock clock, std::int64_t now) noexcept;

// Rounds begin, and what was counted in those before is forgotten; or they are over: one last census shows what of it
// is still there. As take_site_census().
void begin_rounds() noexcept;
void end_rounds(trace::MemorySample sample) noexcept;

// Of a site whose tensors become more and more, as long as nobody knows what keeps them.
struct GrowingSite {
  trace::SiteId site;
  trace::OperatorId op;
  trace::DeviceSlot device;
  std::uint64_t count;  // of its storages at the last census
  trace::SiteMemoryPayload* series;
};

}  // namespace devsan::hooks
