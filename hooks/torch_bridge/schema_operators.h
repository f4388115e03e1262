// The trace's number of an operator that is known by its schema alone: of the wrapped ones, and of any other that the
// process calls. A wrapped operator has one number, whichever way it was called.
#pragma once

#include <ATen/core/function_schema.h>

#include <cstdint>
#include <string_view>

#include "hooks/torch_bridge/traffic.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

struct SchemaOperator {
  trace::OperatorId id = trace::OperatorId::none;  // `none` when the trace or the table is full
  bool wrapped = false;                            // one of ATen's, in the table of wrappers
  bool factory = false;                            // makes new values on the device that it is told
  Watch watch = Watch::none;
  bool collective = false;  // of a process group
  bool point_to_point = false;
  bool barrier = false;       // the host waits in it
  std::int8_t group_at = -1;  // of a collective: which argument is the group,
  std::int8_t peer_at = -1;   // and which the other rank
};

// An operator of a process group.
inline bool is_collective(const c10::FunctionSchema& schema) noexcept {
  return std::string_view(schema.name()).starts_with("c10d::");
}

// Any thread may call this at any time. The first call takes some 0.2 ms, the first one of a new operator some
// microseconds, all others take no lock. What it returns stays.
const SchemaOperator& schema_operator(const c10::FunctionSchema& schema) noexcept;

// In a fork child: a lock that another thread of the parent held is free again.
void reset_schema_operators_after_fork() noexcept;

}  // namespace devsan::hooks
