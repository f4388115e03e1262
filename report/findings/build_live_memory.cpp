#include "report/findings/build_live_memory.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <map>
#include <ranges>
#include <tuple>

#include "report/model/frames.h"

namespace devsan::report {
namespace {

constexpr std::size_t kMaxRows = 32;

// "2.00 GiB" or "4096 bytes" behind `before`, as PyTorch's allocators write sizes.
std::optional<std::uint64_t> size_behind(const std::string& message, std::string_view before) {
  const std::size_t at = message.find(before);
  if (at == message.npos) return std::nullopt;
  const char* begin = message.c_str() + at + before.size();
  char* end = nullptr;
  const double number = std::strtod(begin, &end);
  if (end == begin || number < 0) return std::nullopt;
  const std::string_view unit(*end == ' ' ? end + 1 : end);
  double factor = 1;
  for (const auto& [name, bytes] : {std::pair("KiB", 1024.0), {"MiB", 1048576.0}, {"GiB", 1073741824.0}}) {
    if (unit.starts_with(name)) factor = bytes;
  }
  return static_cast<std::uint64_t>(number * factor);
}

template <class Key>
std::vector<LiveMemory::Row> largest_of(std::map<Key, LiveMemory::Row> rows) {
  std::vector<LiveMemory::Row> sorted;
  for (auto& [key, row] : rows) sorted.push_back(std::move(row));
  std::ranges::stable_sort(sorted, std::greater<>(), &LiveMemory::Row::bytes);
  if (sorted.size() > kMaxRows) sorted.resize(kMaxRows);
  return sorted;
}

void add_to(LiveMemory::Row& row, const trace::LiveMemoryRow& told) {
  row.bytes += told.bytes;
  row.tensors += told.count;
}

void take_rows(const trace::TraceFile& trace, const trace::LiveMemory& told, LiveMemory& live) {
  std::map<trace::LiveKind, LiveMemory::Row> kinds;
  std::map<std::string, LiveMemory::Row> modules;
  for (const trace::LiveMemoryRow& row : told.rows) {
    live.listed += row.bytes;
    LiveMemory::Row& kind = kinds[row.kind];
    kind.kind = row.kind;
    add_to(kind, row);
    if (const std::string module(trace.string(row.module)); !module.empty()) {
      modules[module].module = module;
      add_to(modules[module], row);
    }
  }
  live.by_kind = largest_of(std::move(kinds));
  live.by_module = largest_of(std::move(modules));
  live.by_place = rows_by_place(trace, told.rows);
}

}  // namespace

std::vector<LiveMemory::Row> rows_by_place(const trace::TraceFile& trace, std::span<const trace::LiveMemoryRow> rows) {
  std::map<std::tuple<std::string, int, std::string, trace::LiveKind>, LiveMemory::Row> places;
  for (const trace::LiveMemoryRow& row : rows) {
    const Frame at = user_frame_of(trace, row.site).value_or(Frame{});
    const std::string op(trace.operator_name(row.op));
    LiveMemory::Row& place = places[{at.file, at.line, op, row.kind}];
    place.kind = row.kind;
    place.at = at;
    place.op = op;
    add_to(place, row);
  }
  return largest_of(std::move(places));
}

void add_live_memory(const trace::TraceFile& trace, const trace::Meeting& meeting, Finding& finding) {
  LiveMemory live;
  live.asked = size_behind(finding.message, "Tried to allocate ");
  if (!live.asked) live.asked = size_behind(finding.message, "you tried to allocate ");
  live.capacity = size_behind(finding.message, "total capacity of ");
  live.free = size_behind(finding.message, " of which ");
  const auto same = [&](const trace::LiveMemory& told) {
    return told.fixed.tid == meeting.fixed.tid && told.fixed.time_ns == meeting.fixed.time_ns;
  };
  // Of a backward it is written twice: what it is to the program is known later.
  const auto newest_first = std::views::reverse(trace.live_memory());
  const auto told = std::ranges::find_if(newest_first, same);
  if (told != newest_first.end()) {
    live.device = trace.device_name(told->fixed.device);
    live.allocated = told->fixed.allocated;
    live.reserved = told->fixed.reserved;
    live.listed = told->fixed.rest;
    take_rows(trace, *told, live);
    for (const trace::MemorySeries& series : trace.memory_series()) {
      const bool host = series.kind == trace::SeriesKind::host && live.device == "cpu";
      if ((host || trace.device_name(series.device) == live.device) && series.peak) live.peak_step = series.peak->step;
    }
  }
  finding.live = std::move(live);
}

}  // namespace devsan::report
