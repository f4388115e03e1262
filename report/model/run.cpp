#include "report/model/run.h"

namespace devsan::report {

// No switch here has a default, as in finding.cpp.

std::string_view name_of(trace::CloseMark mark) {
  switch (mark) {
    case trace::CloseMark::open:
      return "open";
    case trace::CloseMark::exited:
      return "exited";
    case trace::CloseMark::quick_exited:
      return "quick-exited";
    case trace::CloseMark::executed:
      return "executed";
    case trace::CloseMark::halted:
      return "halted";
    case trace::CloseMark::stopped:
      return "stopped";
  }
  return "open";
}

std::string_view name_of(trace::DeviceCallKind kind) {
  switch (kind) {
    case trace::DeviceCallKind::none:
      break;
#define DEVSAN_DEVICE_CALL(enumerator, number, name, text) \
  case trace::DeviceCallKind::enumerator:                  \
    return name;
#include "trace/device_call_kinds.def"
#undef DEVSAN_DEVICE_CALL
  }
  return "";
}

std::string_view name_of(trace::MemorySpace space) {
  switch (space) {
    case trace::MemorySpace::none:
      break;
#define DEVSAN_MEMORY_SPACE(enumerator, number, name, text) \
  case trace::MemorySpace::enumerator:                      \
    return name;
#include "trace/memory_spaces.def"
#undef DEVSAN_MEMORY_SPACE
  }
  return "";
}

std::string_view name_of(trace::CopyDirection direction) {
  switch (direction) {
    case trace::CopyDirection::none:
      break;
    case trace::CopyDirection::host_to_device:
      return "host-to-device";
    case trace::CopyDirection::device_to_host:
      return "device-to-host";
    case trace::CopyDirection::device_to_device:
      return "device-to-device";
    case trace::CopyDirection::host_to_host:
      return "host-to-host";
  }
  return "";
}

std::string_view name_of(trace::PeakMoment moment) {
  switch (moment) {
    case trace::PeakMoment::backward_begins:
      return "backward-begins";
    case trace::PeakMoment::backward_ended:
      return "backward-ended";
    case trace::PeakMoment::none:
      break;
  }
  return "census";
}

}  // namespace devsan::report
