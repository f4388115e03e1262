// The text of the files whose code takes part in a meeting: those of its frames, of the histories of its operands, and
// of the functions and classes around them. Not torch's, nor Python's own.
#pragma once

#include <span>

#include "trace/fact_layout.h"

namespace devsan::hooks {

// Writes each to the trace once in the life of the process; nothing is looked for in the text.
void record_sources(const trace::MeetingPayload& meeting, std::span<const trace::ObjectFact> objects) noexcept;

}  // namespace devsan::hooks
