// Writes what calls did into the trace: counters, what is live, and the last calls one by one. A process that does not
// record writes nothing; a forked child begins anew with its own trace.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "preload/cuda_calls.h"
#include "preload/cuda_ledger.h"
#include "trace/device_calls.h"
#include "trace/recorder.h"

namespace devsan::cuda {

// One call that came back.
struct Observation {
  CallId call = CallId::count;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t context = 0;
  std::uint64_t stream = 0;
  std::uint64_t wait_ns = 0;
  std::uint32_t result = 0;
  bool failed = false;
  int device = -1;
  MemorySpace space = MemorySpace::none;
  CopyDirection direction = CopyDirection::none;
  std::uint8_t flags = 0;  // trace::DeviceCallFlags
};

class Journal {
 public:
  // To be asked before the others: whether this process records. Makes the ledger ready in a new one.
  bool begin(trace::Recorder& recorder) noexcept;

  void note(const Observation& seen) noexcept;
  void allocated(const Block& block, bool remembered) noexcept;
  void released(const Block& block) noexcept;
  Ledger& ledger() noexcept { return ledger_; }

 private:
  // Devices above are counted as one that is not known.
  static constexpr std::size_t kDevices = 17;
  static constexpr std::size_t kVariants = 10;
  static constexpr std::size_t kSpaces = 5;

  template <class Payload>
  using Records = std::atomic<Payload*>;

  bool start_over(std::uint64_t epoch) noexcept;
  bool forget_everything() noexcept;
  static std::size_t index_of(int device) noexcept;
  trace::DeviceSlot slot_of(int device) noexcept;
  trace::StringId name_of(CallId call) noexcept;
  trace::DeviceCallPayload* counter_of(const Observation& seen) noexcept;
  trace::DeviceMemoryPayload* memory_of(const Block& block) noexcept;
  trace::CallRingPayload* ring() noexcept;

  trace::Recorder* recorder_ = nullptr;
  std::atomic<std::uint64_t> epoch_{0};  // of the process that the rest belongs to
  std::atomic<pid_t> maker_{0};          // whose thread is making the rest ready for an epoch
  Ledger ledger_;
  std::array<std::array<std::array<Records<trace::DeviceCallPayload>, kVariants>, kDevices>, kCallCount> counters_{};
  std::array<std::array<Records<trace::DeviceMemoryPayload>, kSpaces>, kDevices> memory_{};
  std::array<std::atomic<trace::StringId>, kCallCount> names_{};
  std::array<std::atomic<trace::DeviceSlot>, kDevices> slots_{};
  Records<trace::CallRingPayload> ring_{nullptr};
};

}  // namespace devsan::cuda
