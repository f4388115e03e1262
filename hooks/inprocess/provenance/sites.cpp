#include "hooks/inprocess/provenance/sites.h"

#include <atomic>

#include "hooks/inprocess/bridge/copies.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/common/spin_guard.h"
#include "hooks/inprocess/interpreter/code_table.h"
#include "hooks/inprocess/interpreter/frame_marks.h"
#include "hooks/inprocess/interpreter/python_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/thread_caches.h"
#include "hooks/inprocess/source/code_columns.h"
#include "hooks/inprocess/source/code_names.h"

namespace devsan::hooks {

namespace {

// Sites by what they are made of. Code objects are named by their numbers, which are never used twice.
class SiteIndex {
 public:
  trace::SiteId find_or_add(const void* innermost, const void* user) noexcept {
    const void* inner_code = frame_code(innermost);
    const void* user_code = frame_code(user);
    const Key key{code_table.number(inner_code), code_table.number(user_code), frame_instruction(innermost, inner_code),
                  frame_instruction(user, user_code)};
    if (key.inner == 0 || key.user == 0) return trace::SiteId::none;
    if (const trace::SiteId known = find(key); known != trace::SiteId::none) return known;
    trace::Site site{};
    site.innermost = position_of(inner_code, key.inner_instruction);
    site.user = position_of(user_code, key.user_instruction);
    const SpinGuard guard(lock_);
    if (!guard.held()) return trace::SiteId::none;
    return add(key, site);
  }

  void reset_lock() noexcept { lock_.clear(); }

 private:
  struct Key {
    std::uint32_t inner = 0;
    std::uint32_t user = 0;
    std::int32_t inner_instruction = 0;
    std::int32_t user_instruction = 0;
    bool operator==(const Key&) const = default;
  };
  struct Entry {
    Key key;
    std::atomic<trace::SiteId> site{trace::SiteId::none};
  };
  static constexpr std::uint32_t kCapacity = 1 << 16;
  static constexpr std::uint32_t kMaxProbes = 256;

  static std::uint32_t slot_of(const Key& key) noexcept {
    std::uint64_t hash = std::uint64_t{key.inner} << 32 ^ key.user;
    hash = (hash ^ std::uint64_t(key.inner_instruction) << 20 ^ std::uint64_t(key.user_instruction) << 8) *
           0x9E3779B97F4A7C15u;
    return static_cast<std::uint32_t>(hash >> 48);
  }

  trace::SiteId find(const Key& key) const noexcept {
    for (std::uint32_t at = slot_of(key), tries = 0; tries < kMaxProbes; ++tries, at = (at + 1) % kCapacity) {
      const trace::SiteId site = entries_[at].site.load(std::memory_order_acquire);
      if (site == trace::SiteId::none) break;
      if (entries_[at].key == key) return site;
    }
    return trace::SiteId::none;
  }

  trace::SiteId add(const Key& key, const trace::Site& site) noexcept {
    for (std::uint32_t at = slot_of(key), tries = 0; tries < kMaxProbes; ++tries, at = (at + 1) % kCapacity) {
      Entry& entry = entries_[at];
      const trace::SiteId present = entry.site.load(std::memory_order_relaxed);
      if (present != trace::SiteId::none) {
        if (entry.key == key) return present;
        continue;
      }
      const trace::SiteId added = runtime.recorder->add_site(site);
      entry.key = key;
      entry.site.store(added, std::memory_order_release);
      return added;
    }
    return trace::SiteId::none;
  }

  Entry entries_[kCapacity] = {};
  std::atomic_flag lock_ = ATOMIC_FLAG_INIT;
};

constinit SiteIndex site_index{};

constexpr int kMaxFramesWalked = 48;

// The user's frame by the codes of all frames up to it; null where they are others.
inline const void* known_user_frame(const ChainMemo& chain, const void* frame, std::uint32_t& marks) noexcept {
  if (chain.generation != code_table.generation()) return nullptr;
  const std::ptrdiff_t previous = frame_layout.previous;
  const std::ptrdiff_t code = frame_layout.code;
  const void* const* end = chain.codes + chain.length;
  for (const void* const* known = chain.codes; known != end; ++known) {
    frame = field<const void*>(frame, previous);
    if (frame == nullptr || frame_reference(frame, code) != *known) return nullptr;
  }
  marks |= chain.marks;
  return frame;
}

// Walks from `innermost`, which runs torch's code, outwards to the first frame outside torch, at most kMaxFramesWalked
// frames; `innermost` itself where there is none. Adds the marks of all that it met to `marks`. `caches` may be null.
const void* find_user_frame(ThreadCaches* caches, const void* innermost, std::uint32_t& marks) noexcept {
  ChainMemo chain;
  chain.generation = code_table.generation();
  std::uint32_t met = 0;
  bool memorable = caches != nullptr;
  const void* frame = innermost;
  for (std::uint32_t walked = 0; walked < kMaxFramesWalked; ++walked) {
    frame = frame_previous(frame);
    if (frame == nullptr) break;
    const void* code = frame_code(frame);
    const std::uint32_t here = code_table.marks(code);
    met |= here;
    memorable = memorable && walked < ChainMemo::kLongest && code_table.number(code) != 0;
    if (memorable) chain.codes[walked] = code;
    if ((here & (kTorchCode | kNoCode)) != 0) continue;
    marks |= met;
    if (memorable) {
      chain.length = static_cast<std::uint16_t>(walked + 1);
      chain.marks = static_cast<std::uint16_t>(met);
      caches->chain(frame_code(innermost)) = chain;
    }
    return frame;
  }
  marks |= met;
  return innermost;
}

FrameMemo first_seen(std::uintptr_t instruction, std::uint32_t generation, bool has_site, CallSite site) noexcept {
  return {instruction, generation, has_site, site, trace::SiteId::none, trace::LineageId::none, 0, {}};
}

FrameMemo& frame_to_fill(ThreadCaches* caches, std::uintptr_t instruction) noexcept {
  FrameMemo& known = caches->frame(instruction);
  return known.instruction == instruction ? known : caches->vacant_frame(instruction);
}

// By the caches, where the last call from the innermost frame was another one.
trace::SiteId known_site(ThreadCaches* caches, const void* innermost, const void* user) noexcept {
  const std::uintptr_t innermost_at = instruction_address(innermost);
  const std::uintptr_t user_at = instruction_address(user);
  SiteMemo& memo = caches->site(innermost_at, user_at);
  const std::uint32_t generation = code_table.generation();
  if (memo.innermost != innermost_at || memo.user != user_at || memo.generation != generation) {
    memo = {innermost_at, user_at, generation, site_index.find_or_add(innermost, user)};
  }
  return memo.site;
}

}  // namespace

bool is_same_line(trace::SiteId one, trace::SiteId other) noexcept {
  const trace::Position a = runtime.recorder->site(one).user;
  const trace::Position b = runtime.recorder->site(other).user;
  return a.file == b.file && a.line == b.line && a.column == b.column;
}

const void* innermost_frame(const void* frame) noexcept {
  for (int walked = 0; frame != nullptr && walked < kMaxFramesWalked; ++walked) {
    if (has_code(frame)) return frame;
    frame = frame_previous(frame);
  }
  return nullptr;
}

CallSite walked_site(ThreadCaches* caches, FrameMemo& memo, const void* frame) noexcept {
  std::uint32_t marks = memo.site.marks;
  const void* user = known_user_frame(caches->chain(frame_code(frame)), frame, marks);
  if (user == nullptr) user = find_user_frame(caches, frame, marks);
  const std::uintptr_t user_at = instruction_address(user);
  if (memo.user != user_at) {
    memo.user = user_at;
    memo.whole_site = known_site(caches, frame, user);
  }
  return {memo.whole_site, marks};
}

trace::SiteId site_of_frame(const void* frame) noexcept {
  return site_index.find_or_add(frame, frame);
}

CallSite call_site_again(ThreadCaches* caches, const void* frame, bool whole) noexcept {
  const std::uint32_t generation = code_table.generation();
  const void* innermost = innermost_frame(frame);
  if (innermost == nullptr) return {trace::SiteId::none, 0};
  std::uint32_t marks = code_table.marks(frame_code(innermost));
  const bool alone = !whole || (marks & kTorchCode) == 0;
  // Only code that the table has numbered is known to be the same as long as the generation is.
  const bool memorable = caches != nullptr && innermost == frame && code_table.number(frame_code(innermost)) != 0;
  if (alone) {
    const CallSite site{site_index.find_or_add(innermost, innermost), marks};
    const std::uintptr_t at = instruction_address(innermost);
    if (memorable) frame_to_fill(caches, at) = first_seen(at, generation, true, site);
    return site;
  }
  if (memorable) {
    const std::uintptr_t at = instruction_address(innermost);
    FrameMemo& memo = frame_to_fill(caches, at);
    const bool holds = memo.instruction == at && memo.generation == generation;
    if (!holds) memo = first_seen(at, generation, false, {trace::SiteId::none, marks});
    return walked_site(caches, memo, innermost);
  }
  const void* user = find_user_frame(nullptr, innermost, marks);
  return {site_index.find_or_add(innermost, user), marks};
}

trace::Position position_of(const void* code, int instruction, Columns columns) noexcept {
  trace::Position position{};
  position.file = file_of(code);
  position.function = qualified_name(code);
  CodeLocation location = code_location(code, instruction);
  const bool wanted = columns == Columns::of_all || (code_table.marks(code) & kTorchCode) == 0;
  if (python.PyCode_Addr2Location == nullptr && wanted)
    location = with_columns(location, position.file, code, instruction);
  position.line = location.line;
  position.end_line = location.end_line;
  position.column = location.column;
  position.end_column = location.end_column;
  return position;
}

void reset_sites_after_fork() noexcept {
  site_index.reset_lock();
  code_table.reset_after_fork();
  reset_copies_after_fork();
}

}  // namespace devsan::hooks
