// What the sum of a record leaves out, because it changes after the record was published.
#pragma once

#include <cstddef>

#include "trace/collective_layout.h"
#include "trace/file_layout.h"
#include "trace/memory_layout.h"
#include "trace/step_layout.h"

namespace devsan::trace {

// From the begin of the payload.
constexpr std::size_t bytes_without_sum(RecordKind kind) {
  switch (kind) {
    case RecordKind::Meeting:
      return kMeetingMutableBytes;
    case RecordKind::Traffic:
      return kTrafficMutableBytes;
    case RecordKind::DeviceCall:
      return kDeviceCallMutableBytes;
    case RecordKind::DeviceMemory:
      return kDeviceMemoryMutableBytes;
    case RecordKind::CallRing:
      return kCallRingMutableBytes;
    case RecordKind::CollectiveRing:
      return kCollectiveRingMutableBytes;
    case RecordKind::MemorySeries:
      return kMemorySeriesMutableBytes;
    case RecordKind::StepSeries:
      return kStepSeriesMutableBytes;
    case RecordKind::DataWaits:
      return kDataWaitsMutableBytes;
    case RecordKind::PeakMemory:
      return kPeakMemoryMutableBytes;
    case RecordKind::SiteMemory:
      return kSiteMemoryMutableBytes;
    default:
      return 0;
  }
}

}  // namespace devsan::trace
