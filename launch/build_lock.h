// One builder at a time, also where the cache is shared by machines and flock() does not work or is of one machine
// only.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "launch/owner.h"
#include "preload/hooks_cache.h"

namespace devsan::launch {

// Whether whoever made `path` and keeps it fresh is gone: a process of this machine that has ended, or one of another
// machine that has not touched it for some minutes. `owner` is none where nobody signed it.
bool is_abandoned(const std::filesystem::path& path, const std::optional<Owner>& owner);

// Touches a file or folder, so that other machines see that their owner lives.
class Heartbeat {
 public:
  explicit Heartbeat(std::filesystem::path file);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  void run();

  std::filesystem::path file_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ended_ = false;
  std::thread thread_;
};

// Held while one process builds the hooks of one key; a second one waits in the constructor, after `must_wait` was
// called. Two machines may hold it at once when their clocks or caches lie; each then builds in a folder of its own,
// and one of two good results stays.
class BuildLock {
 public:
  BuildLock(const HooksLocation& location, const std::function<void()>& must_wait);
  ~BuildLock();
  BuildLock(const BuildLock&) = delete;
  BuildLock& operator=(const BuildLock&) = delete;

 private:
  bool take();
  bool remove_abandoned(const std::string& seen);

  std::filesystem::path path_;
  Owner owner_;
  std::unique_ptr<Heartbeat> heartbeat_;
};

}  // namespace devsan::launch
