// The calls that led to a step of a history, as positions in source. Needs no interpreter.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "hooks/inprocess/common/runtime.h"
#include "trace/function_names.h"

namespace devsan::hooks {

// `begin`, and after it the calls that led there, outwards: `calls` as trace::LineageNode has it. May throw
// std::bad_alloc.
inline std::vector<trace::Position> call_frames(const trace::Position& begin, std::uint32_t calls) {
  std::vector<trace::Position> frames{begin};
  for (trace::LineageId id{calls}; id != trace::LineageId::none && frames.size() <= trace::kMaxCalls;) {
    const trace::LineageNode call = runtime.recorder->lineage(id);
    if (call.how != trace::How::called) break;
    frames.push_back(runtime.recorder->site(call.site).user);
    id = call.parent;
  }
  return frames;
}

// The outermost of such positions that a condition holds for, and the call that led into its function.
struct Entered {
  trace::Position within;
  trace::Position call;
};
// None where it holds for none, or nobody is known to have called.
template <class Holds>
std::optional<Entered> outermost_within(const std::vector<trace::Position>& frames, Holds holds) {
  const auto outermost = std::find_if(frames.rbegin(), frames.rend(), holds);
  if (outermost == frames.rbegin() || outermost == frames.rend()) return std::nullopt;
  return Entered{*outermost, *outermost.base()};
}

// Before CPython 3.12 a comprehension is a function of its own, which nobody calls by name.
inline bool is_comprehension(const trace::Position& at) noexcept {
  const auto function = runtime.recorder->string(at.function);
  return trace::function_around(function) != function;
}

}  // namespace devsan::hooks
