// What the Python package `devsan` calls: the scopes in which a thread allows or expects findings. The hooks read them
// when a finding is made.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string_view>

#include "preload/hooks_abi.h"
#include "preload/session.h"

#define DEVSAN_EXPORT extern "C" __attribute__((visibility("default")))

extern "C" constinit thread_local devsan::ThreadBlock devsan_thread_block __attribute__((tls_model("initial-exec")));

namespace devsan {
namespace {

// Scopes that were left, for any thread to take. One that is taken is out of the list as a whole: without a counter a
// list that is popped one by one could be tied wrongly.
constinit std::atomic<FindingScope*> g_spare{nullptr};

void give_back(FindingScope* scope) noexcept {
  FindingScope* head = g_spare.load(std::memory_order_relaxed);
  do {
    scope->outer.store(head, std::memory_order_relaxed);
  } while (!g_spare.compare_exchange_weak(head, scope, std::memory_order_release, std::memory_order_relaxed));
}

FindingScope* take_spare() noexcept {
  FindingScope* const first = g_spare.exchange(nullptr, std::memory_order_acquire);
  if (first == nullptr) return nullptr;
  for (FindingScope* rest = first->outer.load(std::memory_order_relaxed); rest != nullptr;) {
    FindingScope* const next = rest->outer.load(std::memory_order_relaxed);
    give_back(rest);
    rest = next;
  }
  return first;
}

FindingScope* make_scope() noexcept {
  if (FindingScope* const spare = take_spare()) return spare;
  void* const memory = std::malloc(sizeof(FindingScope));
  return memory != nullptr ? new (memory) FindingScope{} : nullptr;
}

// Scopes that are not the innermost when they are left, or are left on another thread, stay in the chain until then.
void drop_closed(ThreadBlock& block) noexcept {
  while (block.scopes != nullptr && !block.scopes->open.load(std::memory_order_acquire)) {
    FindingScope* const closed = block.scopes;
    block.scopes = closed->outer.load(std::memory_order_relaxed);
    give_back(closed);
  }
}

}  // namespace
}  // namespace devsan

// The number of a kind; -1 where there is none of that name.
DEVSAN_EXPORT int devsan_scope_kind(const char* name) noexcept {
  const auto kind = devsan::trace::kind_named(name);
  return kind ? static_cast<int>(*kind) : -1;
}

// `kinds`: bits by number. Null where devsan does nothing in this process.
DEVSAN_EXPORT void* devsan_scope_open(std::uint32_t kinds, int expects) noexcept {
  using namespace devsan;
  if (stage() == Stage::off) return nullptr;
  drop_closed(devsan_thread_block);
  FindingScope* const scope = make_scope();
  if (scope == nullptr) return nullptr;
  scope->kinds.store(kinds, std::memory_order_relaxed);
  scope->expects.store(expects != 0, std::memory_order_relaxed);
  scope->findings.store(0, std::memory_order_relaxed);
  scope->outer.store(devsan_thread_block.scopes, std::memory_order_relaxed);
  scope->open.store(true, std::memory_order_release);
  devsan_thread_block.scopes = scope;
  return scope;
}

// How many findings it has silenced; -1 where there were none and devsan did not record, so that nothing follows from
// it.
DEVSAN_EXPORT long devsan_scope_close(void* handle) noexcept {
  using namespace devsan;
  auto* const scope = static_cast<FindingScope*>(handle);
  const std::uint32_t findings = scope->findings.load(std::memory_order_relaxed);
  scope->open.store(false, std::memory_order_release);
  drop_closed(devsan_thread_block);
  return findings == 0 && !recorder().active() ? -1 : static_cast<long>(findings);
}
