#include "hooks/torch_bridge/collective_groups.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/common/address_slot.h"
#include "hooks/inprocess/common/busy.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/common/spin_guard.h"
#include "hooks/inprocess/common/thread_state.h"

#if __has_include(<torch/csrc/distributed/c10d/ProcessGroup.hpp>)
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#define DEVSAN_HAS_PROCESS_GROUPS 1
#endif

namespace devsan::hooks {

namespace {

constexpr std::size_t kMostGroups = 512;
constexpr std::size_t kGroupSlots = 1024;  // open addressing by the group's address

struct KnownGroup {
  std::atomic<const void*> address{nullptr};
  std::atomic<std::uint64_t> entered{0};  // collectives that were entered in it
  std::atomic<std::uint32_t> number{0};
  std::size_t name = 0;  // hash of it
  bool tells_end = false;
};

KnownGroup known_groups[kGroupSlots];
std::uint32_t groups_so_far = 0;
std::size_t names_so_far[kMostGroups];
std::atomic_flag adding_group = ATOMIC_FLAG_INIT;

// Of an entry whose group is gone. An address in between keeps those behind it reachable.
const void* const gone_group = &gone_group;

KnownGroup* find_group(const void* group) noexcept {
  for (std::size_t probe = 0; probe < kGroupSlots; ++probe) {
    KnownGroup& entry = known_groups[(slot_of_address<kGroupSlots>(group) + probe) % kGroupSlots];
    const void* const there = entry.address.load(std::memory_order_acquire);
    if (there == group) return &entry;
    if (there == nullptr) return nullptr;
  }
  return nullptr;
}

#ifdef DEVSAN_HAS_PROCESS_GROUPS

// Ranks in the whole run. Only some backends of torch keep them, and of the group of all ranks none does.
template <class Group>
std::vector<std::int32_t> ranks_of_group(const Group& group) {
  std::vector<std::int32_t> ranks;
  if constexpr (requires { group.getBackend(Group::BackendType::GLOO)->getBackendOptions()->global_ranks_in_group; }) {
    using Type = typename Group::BackendType;
    const bool nccl = group.getBackendType() == Type::NCCL;
    for (const Type type : {nccl ? Type::NCCL : Type::GLOO, nccl ? Type::GLOO : Type::NCCL}) {
      try {
        const auto options = group.getBackend(type)->getBackendOptions();
        for (const auto rank : options->global_ranks_in_group) ranks.push_back(static_cast<std::int32_t>(rank));
        break;
      } catch (const std::exception&) {  // the group has no such backend, or that keeps no options
        thread_state().thrown = nullptr;
      }
    }
  }
  if (ranks.size() != static_cast<std::size_t>(group.getSize())) ranks.clear();
  return ranks;
}

bool has_backend(const c10d::ProcessGroup& group, c10d::ProcessGroup::BackendType type) {
  try {
    return group.getBackend(type) != nullptr;
  } catch (const std::exception&) {
    thread_state().thrown = nullptr;
    return false;
  }
}

void record_group(KnownGroup& entry, const void* address) {
  const auto& group = *static_cast<const c10d::ProcessGroup*>(address);
  trace::Recorder& recorder = *runtime.recorder;
  const std::string name = group.getGroupName();
  entry.name = std::hash<std::string>()(name);
  entry.tells_end = has_backend(group, c10d::ProcessGroup::BackendType::GLOO) ||
                    has_backend(group, c10d::ProcessGroup::BackendType::MPI);
  trace::CollectiveGroupPayload fixed{};
  fixed.index = groups_so_far + 1;
  fixed.rank = group.getRank();
  fixed.size = group.getSize();
  fixed.again = static_cast<std::uint32_t>(std::count(names_so_far, names_so_far + groups_so_far, entry.name));
  fixed.name = recorder.intern_string(name);
  fixed.description = recorder.intern_string(group.getGroupDesc());
  fixed.backend = recorder.intern_string(group.getBackendName());
  recorder.add_collective_group(fixed, ranks_of_group(group));
}

#endif

// With the lock held.
KnownGroup* add_group(const void* group) noexcept {
  if (KnownGroup* const known = find_group(group)) return known;
#ifdef DEVSAN_HAS_PROCESS_GROUPS
  if (groups_so_far == kMostGroups) return nullptr;
  for (std::size_t probe = 0; probe < kGroupSlots; ++probe) {
    KnownGroup& entry = known_groups[(slot_of_address<kGroupSlots>(group) + probe) % kGroupSlots];
    const void* const there = entry.address.load(std::memory_order_relaxed);
    if (there != nullptr && there != gone_group) continue;
    try {
      const Busy busy(thread_state());  // what torch complains of meanwhile is not the program's
      record_group(entry, group);
    } catch (...) {
      return nullptr;
    }
    names_so_far[groups_so_far] = entry.name;
    entry.entered.store(0, std::memory_order_relaxed);
    entry.number.store(++groups_so_far, std::memory_order_relaxed);
    entry.address.store(group, std::memory_order_release);
    return &entry;
  }
#endif
  return nullptr;
}

}  // namespace

GroupTurn enter_group(const void* group, bool point_to_point) noexcept {
  KnownGroup* entry = find_group(group);
  if (entry == nullptr) [[unlikely]] {
    const SpinGuard guard(adding_group);
    if (guard.held()) entry = add_group(group);
    if (entry == nullptr) return {};
  }
  GroupTurn turn;
  turn.group = entry->number.load(std::memory_order_relaxed);
  turn.tells_end = entry->tells_end;
  if (!point_to_point) turn.sequence = entry->entered.fetch_add(1, std::memory_order_relaxed) + 1;
  return turn;
}

void group_is_made(const void* group) noexcept {
  if (KnownGroup* const entry = find_group(group)) entry->address.store(gone_group, std::memory_order_release);
}

bool has_entered_groups() noexcept {
  const SpinGuard guard(adding_group);
  return guard.held() && groups_so_far != 0;
}

void reset_groups_after_fork() noexcept {
  adding_group.clear();
  if (groups_so_far == 0) return;
  for (KnownGroup& entry : known_groups) entry.address.store(nullptr, std::memory_order_relaxed);
  groups_so_far = 0;
}

}  // namespace devsan::hooks
