#include "hooks/inprocess/interpreter/thread_names.h"

#include <pthread.h>

#include <algorithm>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/own_attributes.h"
#include "hooks/inprocess/interpreter/python_api.h"

namespace devsan::hooks {

// PyThreadState::thread_id lies at another place in each release, always among the first words.
std::ptrdiff_t offset_of_ident(const void* own) noexcept {
  constexpr std::ptrdiff_t kLookedAt = 256;
  const auto ident = static_cast<std::uintptr_t>(::pthread_self());
  for (std::ptrdiff_t at = 0; at < kLookedAt; at += static_cast<std::ptrdiff_t>(sizeof ident)) {
    if (field<std::uintptr_t>(own, at) == ident) return at;
  }
  return -1;
}

void name_threads(std::span<ThreadIdentity> threads) noexcept {
  const OwnAttributes threading = attributes_of_module("threading");
  void* const active = threading ? threading["_active"] : nullptr;  // ident -> Thread
  if (active == nullptr || !is_dict(active)) return;
  std::ptrdiff_t at = 0;
  void* key = nullptr;
  void* thread = nullptr;
  while (python.PyDict_Next(active, &at, &key, &thread) != 0) {
    const auto ident = static_cast<std::uintptr_t>(integer_in(key).value_or(0));
    const auto found = std::ranges::find(threads, ident, &ThreadIdentity::ident);
    if (ident == 0 || found == threads.end()) continue;
    const OwnAttributes own(thread);
    if (!own) continue;
    char buffer[256];
    found->tid = static_cast<std::uint32_t>(integer_in(own["_native_id"]).value_or(0));
    found->name = runtime.recorder->intern_string(text_of(own["_name"], buffer, sizeof buffer));
  }
}

}  // namespace devsan::hooks
