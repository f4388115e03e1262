#include "hooks/inprocess/events/silence.h"

#include <atomic>

#include "hooks/inprocess/common/runtime.h"

namespace devsan::hooks {

namespace {

// Backwards in progress, in the low bits, and above them the scopes of the only one. One word, so that both change at
// once.
constinit std::atomic<std::uint64_t> backwards{0};
constexpr unsigned kCountBits = 16;
constexpr std::uint64_t kCountMask = (std::uint64_t{1} << kCountBits) - 1;

FindingScope* scopes_of_backward() noexcept {
  const std::uint64_t word = backwards.load(std::memory_order_acquire);
  return (word & kCountMask) == 1 ? reinterpret_cast<FindingScope*>(word >> kCountBits) : nullptr;
}

FindingScope* find_scope(FindingScope* scope, trace::FindingKind kind) noexcept {
  constexpr int kMaxDepth = 1000;  // a scope that is used again while it is read leads elsewhere
  for (int depth = 0; scope != nullptr && depth < kMaxDepth; ++depth) {
    if (scope->open.load(std::memory_order_acquire) &&
        (scope->kinds.load(std::memory_order_relaxed) & trace::set_of(kind)) != 0) {
      return scope;
    }
    scope = scope->outer.load(std::memory_order_relaxed);
  }
  return nullptr;
}

}  // namespace

Silence silence_by_program(const ThreadState& state, trace::FindingKind kind, FindingScope** told) noexcept {
  FindingScope* scope = find_scope(state.scopes, kind);
  if (scope == nullptr && state.backward_depth != 0) scope = find_scope(scopes_of_backward(), kind);
  if (told != nullptr) {
    *told = scope;
  } else {
    count_for(scope);
  }
  if (scope == nullptr) return Silence::none;
  return scope->expects.load(std::memory_order_relaxed) ? Silence::expected : Silence::allowed;
}

void count_for(FindingScope* scope) noexcept {
  if (scope != nullptr) scope->findings.fetch_add(1, std::memory_order_relaxed);
}

std::uint32_t flags_of(Silence silence) noexcept {
  switch (silence) {
    case Silence::none:
      return 0;
    case Silence::allowed:
      return trace::kAllowed;
    case Silence::expected:
      return trace::kExpected;
  }
  return 0;
}

bool is_suppressed(trace::FindingKind kind, trace::OperatorId op, const trace::Position& place) noexcept {
  const trace::Recorder& recorder = *runtime.recorder;
  return runtime.host->suppressed({kind, recorder.string(recorder.operator_name(op)), recorder.string(place.file),
                                   recorder.string(place.function)});
}

BackwardScopes::BackwardScopes(const ThreadState& state) noexcept : outermost_(state.backward_depth == 0) {
  if (!outermost_) return;
  const std::uint64_t own = reinterpret_cast<std::uintptr_t>(state.scopes) << kCountBits | 1;
  std::uint64_t before = backwards.load(std::memory_order_relaxed);
  while (!backwards.compare_exchange_weak(before, before == 0 ? own : (before & kCountMask) + 1)) {
  }
}

BackwardScopes::~BackwardScopes() {
  if (!outermost_) return;
  std::uint64_t before = backwards.load(std::memory_order_relaxed);
  while (!backwards.compare_exchange_weak(before, (before & kCountMask) == 1 ? 0 : before - 1)) {
  }
}

}  // namespace devsan::hooks
