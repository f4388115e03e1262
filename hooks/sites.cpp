#include "hooks/sites.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <string_view>

#include "hooks/code_table.h"
#include "hooks/copies.h"
#include "hooks/python_api.h"
#include "hooks/python_frames.h"
#include "hooks/runtime.h"
#include "hooks/spin_guard.h"
#include "hooks/thread_caches.h"

namespace devsan::hooks {

namespace {

// Sites by what they are made of. Code objects are named by their numbers, which are never used twice.
class SiteIndex {
 public:
  trace::SiteId find_or_add(const CallerFrames& caller) noexcept {
    const Key key{code_table.number(caller.innermost.code), code_table.number(caller.user.code),
                  caller.innermost.instruction, caller.user.instruction};
    if (key.inner == 0 || key.user == 0) return trace::SiteId::none;
    if (const trace::SiteId known = find(key); known != trace::SiteId::none) return known;
    trace::Site site{};
    site.innermost = position_of(caller.innermost);
    site.user = position_of(caller.user);
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

// Python names the main script as the command line did, relative to the directory that the process was started in.
trace::StringId intern_path(std::string_view file) noexcept {
  const std::string_view start = runtime.start_directory;
  char path[4096];
  if (!file.starts_with('/') && !file.starts_with('<') && !start.empty() &&
      start.size() + file.size() + 2 < sizeof path) {
    const int length =
        std::snprintf(path, sizeof path, "%s/%.*s", runtime.start_directory, int(file.size()), file.data());
    const int saved_errno = errno;
    if (::access(path, F_OK) == 0) file = {path, static_cast<std::size_t>(length)};
    errno = saved_errno;
  }
  return runtime.recorder->intern_string(file);
}

}  // namespace

trace::SiteId find_site_again(ThreadCaches* caches, const CallerFrames& caller) noexcept {
  if (caller.innermost.code == nullptr) return trace::SiteId::none;
  const std::uint32_t generation = code_table.generation();
  const trace::SiteId site = site_index.find_or_add(caller);
  const std::uintptr_t innermost = caller.innermost.address();
  const std::uintptr_t user = caller.user.address();
  if (caches != nullptr) caches->site(innermost, user) = {innermost, user, generation, site};
  return site;
}

trace::Position position_of(const FramePosition& frame) noexcept {
  char buffer[1024];
  trace::Position position{};
  position.file = intern_path(text_of(field<const void*>(frame.code, code_members.filename), buffer, sizeof buffer));
  const std::ptrdiff_t name = code_members.qualified_name != 0 ? code_members.qualified_name : code_members.name;
  position.function =
      runtime.recorder->intern_string(text_of(field<const void*>(frame.code, name), buffer, sizeof buffer));
  const CodeLocation location = code_location(frame.code, frame.instruction);
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
