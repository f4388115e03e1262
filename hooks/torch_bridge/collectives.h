// Collectives, which are operators of c10d, on their way through the dispatcher: each goes into the log of collectives
// with its group, its number there, its size and the line it was entered from; also one that another operator, or
// torch's own Python, calls to do its work.
#pragma once

#include <ATen/record_function.h>

#include "hooks/torch_bridge/boxed_operands.h"
#include "hooks/torch_bridge/schema_operators.h"

namespace devsan::hooks {

// `guard` names the call until it ends.
void collective_begins(const at::RecordFunction& guard, const SchemaOperator& op, BoxedArguments arguments) noexcept;
void collective_returns(const at::RecordFunction& guard) noexcept;

// The device's work will end by the event, if the calling thread is entering a collective.
void collective_records_event(const void* event, std::int64_t stream) noexcept;

}  // namespace devsan::hooks
