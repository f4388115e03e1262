#include "report/findings/build_device_calls.h"

#include <algorithm>

namespace devsan::report {
namespace {

constexpr std::size_t kLastCalls = 64;

DeviceCall call_of(const trace::TraceFile& trace, const trace::DeviceCallPayload& told) {
  DeviceCall call;
  call.call = trace.string(told.call);
  call.kind = told.kind;
  call.device = trace.device_name(told.device);
  call.space = told.space;
  call.direction = told.direction;
  call.async = (told.flags & trace::kAsyncCall) != 0;
  call.pageable = (told.flags & trace::kPageableCall) != 0;
  call.count = told.calls;
  call.failed = told.failed;
  call.captured = told.captured;
  call.waits = told.waits;
  call.bytes = told.bytes;
  call.wait_ns = told.wait_ns;
  return call;
}

LastDeviceCall last_call_of(const trace::TraceFile& trace, const trace::DeviceCallEvent& event) {
  LastDeviceCall last;
  last.call = trace.string(event.call);
  last.device = trace.device_name(event.device);
  last.address = event.address;
  last.bytes = event.bytes;
  last.context = event.context;
  last.stream = event.stream;
  last.result = event.result;
  last.captured = (event.flags & trace::kCapturedCall) != 0;
  last.waited = (event.flags & trace::kHostWaited) != 0;
  last.thread = event.tid;
  last.step = event.step;
  last.time_ns = event.time_ns;
  return last;
}

}  // namespace

void add_device_calls(const trace::TraceFile& trace, Process& process) {
  for (const trace::DeviceCallPayload& told : trace.device_calls()) {
    // Two threads that made the same counter at once have left one behind that nobody used.
    if (told.calls + told.failed + told.captured == 0) continue;
    process.device_calls.push_back(call_of(trace, told));
  }
  std::ranges::stable_sort(process.device_calls, {}, [](const DeviceCall& c) { return std::pair(c.device, c.call); });
  for (const trace::DeviceMemoryPayload& told : trace.device_memory()) {
    if (told.peak + told.untracked == 0) continue;
    process.device_memory.push_back({std::string(trace.device_name(told.device)), told.space, told.live, told.peak,
                                     told.peak_step, told.blocks, told.untracked});
  }
  std::ranges::stable_sort(process.device_memory, {},
                           [](const DeviceMemory& m) { return std::pair(m.device, m.space); });
  process.device_calls_made = trace.last_calls().recorded;
  for (const trace::DeviceCallEvent& event : trace.last_calls().last) {
    if (process.last_device_calls.size() == kLastCalls) break;
    process.last_device_calls.push_back(last_call_of(trace, event));
  }
}

}  // namespace devsan::report
