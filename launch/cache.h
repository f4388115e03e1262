// Writing into the cache of hooks: one builder at a time, and nothing there that is not whole.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "preload/hooks_cache.h"

namespace devsan::launch {

// One sentence about a location that cannot be used; empty for `ready` and `missing`.
std::string why_unusable(HooksState state, const HooksLocation& location);

// Makes the cache's directory if there is none. Throws Failure where it is not this user's alone.
void prepare_cache(const HooksLocation& location);

// Held while one process builds the hooks of one key; a second one waits in the constructor, after `must_wait` was
// called.
class BuildLock {
 public:
  BuildLock(const HooksLocation& location, const std::function<void()>& must_wait);
  ~BuildLock();
  BuildLock(const BuildLock&) = delete;
  BuildLock& operator=(const BuildLock&) = delete;

 private:
  int descriptor_;
};

// A folder in the cache to build in. It goes away with this object, unless it was published: then it has become the
// location's own folder, in one step.
class Staging {
 public:
  explicit Staging(const HooksLocation& location);  // the lock must be held
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void publish();
  // Moves one file of it into the location's folder, which is there already.
  void publish_file(const char* name);

 private:
  std::filesystem::path path_;
  std::filesystem::path final_;
};

}  // namespace devsan::launch
