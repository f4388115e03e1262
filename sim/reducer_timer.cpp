#include "sim/reducer_timer.h"

#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

#include <memory>

#include "sim/devices.h"

namespace devsan::sim {
namespace {

// Work on a simulated device is done when the call that starts it returns: the host's clock is the device's.
class HostTimer final : public c10d::Timer {
 public:
  std::optional<std::int64_t> measureDifference(Event start, Event end) override {
    const std::int64_t from = getTimeRef(start);
    const std::int64_t to = getTimeRef(end);
    if (from == c10d::kUnsetTime || to == c10d::kUnsetTime || to < from) return std::nullopt;
    return to - from;
  }
};

}  // namespace

void register_reducer_timer() {
  const auto make = [](c10::Device) -> std::unique_ptr<c10d::Timer> { return std::make_unique<HostTimer>(); };
  c10d::TimerRegistry()->Register(kSimulatedType, make, c10::REGISTRY_PREFERRED);
}

}  // namespace devsan::sim
