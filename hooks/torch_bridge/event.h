// Something that passed between the host and a device, or met a copy that was still running: counted in the trace, once
// for each line and operator.
#pragma once

#include <c10/util/FunctionRef.h>

#include <cstdint>
#include <string_view>

#include "hooks/inprocess/common/thread_state.h"
#include "hooks/torch_bridge/operand_list.h"
#include "trace/recorder.h"

namespace devsan::hooks {

struct Event {
  trace::TrafficKind kind = trace::TrafficKind::none;
  trace::RaceKind race = trace::RaceKind::none;
  trace::OperatorId op = trace::OperatorId::none;
  CallSite site;
  trace::SiteId cause = trace::SiteId::none;
  std::uint8_t flags = 0;  // TrafficFlags
  std::uint64_t bytes = 0;
};

// Counts the event; `describe` gives the operands of the first one at its site. Null where there is no room for it.
trace::TrafficPayload* count_event(ThreadState& state, Event event,
                                   c10::function_ref<void(OperandList&)> describe) noexcept;

// Where the program is. Threads of autograd's engine have no Python frames: there it is the line that called backward.
CallSite place(const ThreadState& state) noexcept;
// Whether torch or a library is there.
bool is_foreign(const CallSite& site) noexcept;

std::string_view schema_of(trace::OperatorId op) noexcept;
std::string_view name_of(trace::OperatorId op) noexcept;
// The operator that the thread called last: around a nested one, the outermost.
trace::OperatorId running_operator(const ThreadState& state) noexcept;

}  // namespace devsan::hooks
