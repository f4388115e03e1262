// Collectives: each goes into the log of collectives with its group, its number there, its size and the line it was
// entered from, and so does one that another operator, or torch's own Python, calls to do its work. They come by the
// functions of their group (group_calls.h), or as operators of c10d through the dispatcher (boxed_call.h).
#pragma once

#include <ATen/record_function.h>

#include <cstddef>
#include <cstdint>

#include "hooks/inprocess/common/thread_state.h"
#include "hooks/torch_bridge/boxed_operands.h"
#include "hooks/torch_bridge/collective_sizes.h"
#include "hooks/torch_bridge/schema_operators.h"
#include "trace/collective_ring.h"

namespace devsan::hooks {

// A call that enters a collective, while it runs. Of one thread; the last one that began ends first.
class EnteredCollective {
 public:
  // `group`: a c10d::ProcessGroup. `peer`: -1 for none. Nothing is recorded where the trace has no room.
  void begin(ThreadState& state, const void* group, const SchemaOperator& op, const CollectiveSizes& sizes, int peer,
             CallSite site) noexcept;
  // `work`: the c10d::Work that the call returned; null where the caller has nothing to wait for. NCCL gives none for a
  // collective that is not asynchronous, which then is still to run on the calling thread's stream.
  void returned(const void* work) noexcept;
  void failed() noexcept;

  void records_event(const void* event, std::int64_t stream) noexcept;

 private:
  static constexpr std::size_t kEvents = 8;

  bool leave() noexcept;
  const void* end_event() const noexcept;

  bool recorded_ = false;
  bool on_real_device_ = false;
  bool tells_end_ = false;
  bool returns_at_end_ = false;  // where it gives no work
  EnteredCollective* around_ = nullptr;
  trace::CollectiveRef collective_;
  std::size_t event_count_ = 0;
  const void* events_[kEvents] = {};
  std::int64_t streams_[kEvents] = {};
};

// A collective on its way through the dispatcher. `guard` names the call until it ends.
void collective_begins(const at::RecordFunction& guard, const SchemaOperator& op, BoxedArguments arguments) noexcept;
void collective_returns(const at::RecordFunction& guard) noexcept;

// The device's work will end by the event, if the calling thread is entering a collective.
void collective_records_event(const void* event, std::int64_t stream) noexcept;

}  // namespace devsan::hooks
