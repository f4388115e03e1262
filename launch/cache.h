// Writing into the cache of hooks: nothing is there that is not whole, and nobody else decides what is.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "launch/build_lock.h"
#include "preload/hooks_cache.h"

namespace devsan::launch {

// One sentence about a location that cannot be used; empty for `ready` and `missing`.
std::string why_unusable(HooksState state, const HooksLocation& location);

// Makes the cache's directory if there is none. Where the user has no cache that can be written, the location becomes
// that in the temporary one; the sentence that is returned says so, and is empty otherwise. Throws Failure where
// neither can be used.
std::string prepare_cache(HooksLocation& location);

// A folder in the cache to build in. It goes away with this object, unless it was published: then it has become the
// location's own folder, in one step. What builders that are gone have left is removed first.
class Staging {
 public:
  explicit Staging(const HooksLocation& location);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // Takes the place of what is there; where another builder was faster, either result may stay, for both are whole.
  void publish();
  // Moves one file of it into the location's folder, which is there already.
  void publish_file(const char* name);

 private:
  void set_aside();

  std::filesystem::path root_;
  std::filesystem::path path_;
  std::filesystem::path final_;
  std::string owner_;
  std::unique_ptr<Heartbeat> heartbeat_;
};

}  // namespace devsan::launch
