// The few lines that a user sees at once, on stderr, when the first finding of the process is made. The whole report is
// made later from the trace.
#pragma once

#include <span>

#include "trace/file_layout.h"

namespace devsan::hooks {

void say_first_finding(const trace::MeetingPayload& meeting, std::span<const trace::OperandRecord> operands) noexcept;

}  // namespace devsan::hooks
