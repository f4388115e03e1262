#include "launch/cache.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "launch/messages.h"

namespace devsan::launch {
namespace {

namespace fs = std::filesystem;

constexpr char kStagingPrefix[] = ".building-";

Failure cannot(const std::string& what, const fs::path& path, int error) {
  return Failure("cannot " + what + " " + path.string() + ": " + std::strerror(error));
}

}  // namespace

std::string why_unusable(HooksState state, const HooksLocation& location) {
  switch (state) {
    case HooksState::ready:
    case HooksState::missing:
      return {};
    case HooksState::no_home:
      return "there is no directory for the hooks: set HOME or XDG_CACHE_HOME";
    case HooksState::no_build_id:
      return "libtorch_cpu.so cannot be read, or has no build-id to tell it by";
    case HooksState::not_private:
      return std::string("the cache ") + location.root +
             " is refused, because it belongs to another user or can be written by others";
  }
  return {};
}

void prepare_cache(const HooksLocation& location) {
  std::error_code error;
  fs::create_directories(fs::path(location.root).parent_path(), error);
  if (error) throw cannot("make the directory", fs::path(location.root).parent_path(), error.value());
  if (mkdir(location.root, 0700) != 0 && errno != EEXIST) throw cannot("make the directory", location.root, errno);
  if (!is_private_directory(location.root)) throw Failure(why_unusable(HooksState::not_private, location));
}

BuildLock::BuildLock(const HooksLocation& location, const std::function<void()>& must_wait) {
  const std::string path = std::string(location.root) + "/." + location.key + ".lock";
  descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor_ < 0) throw cannot("open", path, errno);
  if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  if (errno == EWOULDBLOCK) {
    must_wait();
    while (flock(descriptor_, LOCK_EX) != 0) {
      if (errno != EINTR) break;
    }
    return;
  }
  const int error = errno;
  close(descriptor_);
  throw cannot("lock", path, error);
}

// The file stays: another process may have it open already and wait for it.
BuildLock::~BuildLock() {
  close(descriptor_);
}

Staging::Staging(const HooksLocation& location) : final_(location.directory) {
  const std::string prefix = std::string(kStagingPrefix) + location.key;
  std::error_code error;
  // Whoever made an earlier one is dead: the lock is ours.
  for (const fs::directory_entry& entry : fs::directory_iterator(location.root, error)) {
    if (entry.path().filename().string().starts_with(prefix)) fs::remove_all(entry.path(), error);
  }
  path_ = fs::path(location.root) / (prefix + "." + std::to_string(getpid()));
  if (mkdir(path_.c_str(), 0700) != 0) throw cannot("make the directory", path_, errno);
}

Staging::~Staging() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

void Staging::publish() {
  // A folder that is there already (--force) changes places with the new one; processes that have loaded from it keep
  // what they have mapped.
  if (renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, final_.c_str(), RENAME_EXCHANGE) == 0) return;
  if (errno != ENOENT) {
    std::error_code ignored;
    fs::remove_all(final_, ignored);
  }
  if (rename(path_.c_str(), final_.c_str()) != 0) throw cannot("rename " + path_.string() + " to", final_, errno);
  path_.clear();
}

void Staging::publish_file(const char* name) {
  if (rename((path_ / name).c_str(), (final_ / name).c_str()) != 0) {
    throw cannot("rename " + (path_ / name).string() + " to", final_ / name, errno);
  }
}

}  // namespace devsan::launch
