// Findings that nobody is to be told of at once: the program allows or expects them (devsan.allow, devsan.expect), or a
// suppression names them. They are recorded all the same.
#pragma once

#include <cstdint>
#include <string_view>

#include "hooks/inprocess/common/thread_state.h"
#include "preload/hooks_abi.h"
#include "trace/file_layout.h"
#include "trace/finding_kind.h"

namespace devsan::hooks {

enum class Silence : std::uint8_t { none, allowed, expected };

// What the innermost scope that names the kind says; of the thread, or of the one whose backward it runs. Counts for
// that scope, so it is to be asked once for each time a finding is made. With `scope` it does not count, and gives the
// scope, for the caller to count when it knows that there is a finding.
Silence silence_by_program(const ThreadState& state, trace::FindingKind kind, FindingScope** scope = nullptr) noexcept;
void count_for(FindingScope* scope) noexcept;  // which may be null

// As MeetingPayload::flags have it.
std::uint32_t flags_of(Silence silence) noexcept;

// Whether the process was given a suppression of such a finding at `place`.
bool is_suppressed(trace::FindingKind kind, trace::OperatorId op, const trace::Position& place) noexcept;

// While a thread waits for a backward, the engine's threads work in its scopes. Where several threads wait at once,
// nothing tells which one a thread of the engine works for: then it works in none.
class BackwardScopes {
 public:
  explicit BackwardScopes(const ThreadState& state) noexcept;
  ~BackwardScopes();
  BackwardScopes(const BackwardScopes&) = delete;
  BackwardScopes& operator=(const BackwardScopes&) = delete;

 private:
  const bool outermost_;
};

}  // namespace devsan::hooks
