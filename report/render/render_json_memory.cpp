#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "report/findings/build_endings.h"
#include "report/render/render_json_parts.h"

namespace devsan::report {
namespace {

std::string hexadecimal(std::uint64_t number) {
  std::array<char, 20> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(number));
  return text.data();
}

Json call_json(const DeviceCall& call) {
  Json json = {{"call", call.call}, {"kind", name_of(call.kind)}, {"device", text_or_null(call.device)}};
  if (call.space != trace::MemorySpace::none) json["space"] = name_of(call.space);
  if (call.direction != trace::CopyDirection::none) json["direction"] = name_of(call.direction);
  json["async"] = call.async;
  if (call.kind == trace::DeviceCallKind::copy) json["pageable"] = call.pageable;
  json["count"] = call.count;
  json["failed"] = call.failed;
  json["captured"] = call.captured;
  json["waits"] = call.waits;
  json["bytes"] = call.bytes;
  json["wait_ns"] = call.wait_ns;
  return json;
}

Json memory_json(const DeviceMemory& memory) {
  return {{"device", text_or_null(memory.device)},
          {"space", name_of(memory.space)},
          {"live", memory.live},
          {"peak", memory.peak},
          {"peak_step", memory.peak_step},
          {"blocks", memory.blocks},
          {"untracked", memory.untracked}};
}

Json last_call_json(const LastDeviceCall& call) {
  Json json = {{"call", call.call}, {"device", text_or_null(call.device)}, {"address", hexadecimal(call.address)}};
  json["bytes"] = call.bytes;
  json["context"] = hexadecimal(call.context);
  json["stream"] = hexadecimal(call.stream);
  json["result"] = call.result;
  json["captured"] = call.captured;
  json["waited"] = call.waited;
  json["thread"] = call.thread;
  json["step"] = call.step;
  json["time"] = text_or_null(iso_time(call.time_ns));
  return json;
}

Json point_json(const MemoryPoint& point) {
  return {{"step", point.step},
          {"used", point.used},
          {"held", point.held},
          {"time", text_or_null(iso_time(point.time_ns))}};
}

Json curve_json(const MemoryCurve& curve) {
  Json points = Json::array();
  for (const MemoryPoint& point : curve.points) points.push_back(point_json(point));
  Json json = {{"device", text_or_null(curve.device)}, {"peak", point_json(curve.peak)}, {"points", points}};
  if (curve.clock != trace::SeriesClock::iterations) json["clock"] = name_of(curve.clock);
  return json;
}

}  // namespace

Json ending_json(const Ending& ending) {
  Json json = {{"signal", ending.signal != 0 ? Json(signal_name(ending.signal)) : Json(nullptr)}};
  json["status"] = ending.status ? Json(*ending.status) : Json(nullptr);
  json["oom_kills"] = ending.oom_kills ? Json(*ending.oom_kills) : Json(nullptr);
  json["named_by_kernel"] = ending.named_by_kernel;
  json["hint"] = text_or_null(ending.hint);
  return json;
}

Json growth_json(const Growth& growth) {
  const auto hundredths = [](double number) { return std::round(number * 100) / 100; };
  Json json = {{"device", text_or_null(growth.device)}, {"holder", text_or_null(growth.holder)}};
  json["graph"] = growth.graph;
  json["since"] = growth.since;
  json["bytes_per_step"] = hundredths(growth.bytes_per_step);
  json["records_per_step"] = hundredths(growth.records_per_step);
  json["bytes"] = growth.bytes;
  json["steps_left"] = growth.steps_left ? Json(*growth.steps_left) : Json(nullptr);
  json["clock"] = name_of(growth.clock);
  json["parts"] = Json::array();
  for (const Growth::Part& part : growth.parts) {
    json["parts"].push_back({{"op", part.op},
                             {"file", text_or_null(part.at.file)},
                             {"line", part.at.line},
                             {"bytes_per_step", hundredths(part.bytes_per_step)},
                             {"tensors_per_step", hundredths(part.tensors_per_step)},
                             {"bytes", part.bytes}});
  }
  return json;
}

namespace {

Json kinds_json(const std::vector<LiveMemory::Row>& rows) {
  Json json = Json::array();
  for (const LiveMemory::Row& row : rows) {
    json.push_back({{"kind", name_of(row.kind)}, {"bytes", row.bytes}, {"tensors", row.tensors}});
  }
  return json;
}

Json places_json(const std::vector<LiveMemory::Row>& rows) {
  Json json = Json::array();
  for (const LiveMemory::Row& row : rows) {
    json.push_back({{"op", row.op},
                    {"file", text_or_null(row.at.file)},
                    {"line", row.at.line},
                    {"kind", name_of(row.kind)},
                    {"bytes", row.bytes},
                    {"tensors", row.tensors}});
  }
  return json;
}

}  // namespace

Json peak_memory_json(const PeakMemory& peak) {
  Json json = {{"device", text_or_null(peak.device)}, {"peak", nullptr}};
  if (peak.peak) json["peak"] = {{"bytes", *peak.peak}, {"step", peak.peak_step}, {"in_backward", peak.in_backward}};
  json["step"] = peak.step;
  json["moment"] = name_of(peak.moment);
  json["time"] = text_or_null(iso_time(peak.time_ns));
  json["allocated"] = peak.allocated;
  json["reserved"] = peak.reserved;
  json["listed"] = peak.listed;
  json["by_kind"] = kinds_json(peak.by_kind);
  json["by_place"] = places_json(peak.by_place);
  return json;
}

Json live_memory_json(const LiveMemory& live) {
  const auto number = [](const auto& known) { return known ? Json(*known) : Json(nullptr); };
  Json json = {{"device", text_or_null(live.device)}, {"asked", number(live.asked)}};
  json["capacity"] = number(live.capacity);
  json["free"] = number(live.free);
  json["allocated"] = live.allocated;
  json["reserved"] = live.reserved;
  json["listed"] = live.listed;
  json["peak_step"] = number(live.peak_step);
  json["by_kind"] = kinds_json(live.by_kind);
  json["by_module"] = Json::array();
  for (const LiveMemory::Row& row : live.by_module) {
    json["by_module"].push_back({{"module", row.module}, {"bytes", row.bytes}, {"tensors", row.tensors}});
  }
  json["by_place"] = places_json(live.by_place);
  return json;
}

void add_memory_json(Json& json, const Process& process) {
  for (const MemoryCurve& curve : process.memory) json["memory"].push_back(curve_json(curve));
  for (const PeakMemory& peak : process.peak_memory) json["peak_memory"].push_back(peak_memory_json(peak));
}

void add_device_calls_json(Json& json, const Process& process) {
  if (process.device_calls.empty()) return;
  Json calls = Json::array();
  for (const DeviceCall& call : process.device_calls) calls.push_back(call_json(call));
  Json memory = Json::array();
  for (const DeviceMemory& space : process.device_memory) memory.push_back(memory_json(space));
  Json last = Json::array();
  for (const LastDeviceCall& call : process.last_device_calls) last.push_back(last_call_json(call));
  json["device_calls"] = {{"made", process.device_calls_made}, {"memory", memory}, {"calls", calls}, {"last", last}};
}

}  // namespace devsan::report
