#include "launch/cache.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <vector>

#include "launch/messages.h"

namespace devsan::launch {
namespace {

namespace fs = std::filesystem;

constexpr char kStagingPrefix[] = ".building-";
constexpr char kAsidePrefix[] = ".replaced-";

Failure cannot(const std::string& what, const fs::path& path, int error) {
  return Failure("cannot " + what + " " + path.string() + ": " + std::strerror(error));
}

std::string why_not_private(const fs::path& cache) {
  return "the cache " + cache.string() + " is refused, because it belongs to another user or can be written by others";
}

// 0, or what kept it from being there and writable.
int make_cache(const fs::path& root) {
  std::error_code error;
  fs::create_directories(root.parent_path(), error);
  if (error) return error.value();
  if (mkdir(root.c_str(), 0700) != 0 && errno != EEXIST) return errno;
  if (is_private_directory(root.c_str()) && access(root.c_str(), W_OK) != 0) return errno;
  return 0;
}

bool is_no_place_to_write(int error) {
  return error == EROFS || error == EACCES || error == EPERM || error == ENOENT || error == ENOTDIR ||
         error == EDQUOT || error == ENOSPC;
}

// Of builders of this key that are gone.
void remove_left_folders(const fs::path& root, const std::string& key) {
  const std::vector<std::string> prefixes = {kStagingPrefix + key + ".", kAsidePrefix + key + "."};
  std::vector<fs::path> abandoned;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(root, error)) {
    const std::string name = entry.path().filename().string();
    for (const std::string& prefix : prefixes) {
      if (name.starts_with(prefix) && is_abandoned(entry.path(), Owner::parse(name.substr(prefix.size())))) {
        abandoned.push_back(entry.path());
      }
    }
  }
  for (const fs::path& folder : abandoned) fs::remove_all(folder, error);
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
      return why_not_private(location.root);
  }
  return {};
}

std::string prepare_cache(HooksLocation& location) {
  std::string why = "there is no home directory";
  if (location.root[0] != '\0') {
    const int error = make_cache(location.root);
    if (error == 0 && !is_private_directory(location.root)) throw Failure(why_not_private(location.root));
    if (error == 0) return {};
    if (!is_no_place_to_write(error)) throw cannot("make the directory", location.root, error);
    why = "the cache " + std::string(location.root) + " cannot be written (" + std::strerror(error) + ")";
  }
  char temporary[kCachePathSize];
  if (!find_temporary_root(temporary, sizeof temporary)) throw Failure(why);
  const int error = make_cache(temporary);
  if (error != 0) throw Failure(why + ", nor can " + temporary + " (" + std::strerror(error) + "): set XDG_CACHE_HOME");
  if (!is_private_directory(temporary)) throw Failure(why + "; " + why_not_private(temporary));
  look_in_cache(temporary, &location);
  return why + ": the hooks are kept in " + temporary;
}

Staging::Staging(const HooksLocation& location)
    : root_(location.root), final_(location.directory), owner_(Owner::current().text()) {
  remove_left_folders(root_, location.key);
  const fs::path path = root_ / (std::string(kStagingPrefix) + location.key + "." + owner_);
  if (mkdir(path.c_str(), 0700) != 0) throw cannot("make the directory", path, errno);
  path_ = path;
  heartbeat_ = std::make_unique<Heartbeat>(path_);
}

Staging::~Staging() {
  heartbeat_.reset();
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

// A directory that has files is no target of a rename. Processes that have loaded from what was there keep what they
// have mapped.
void Staging::publish() {
  constexpr int kTries = 5;
  for (int i = 0; i < kTries; ++i) {
    if (rename(path_.c_str(), final_.c_str()) == 0) {
      heartbeat_.reset();
      path_.clear();
      return;
    }
    if (errno != ENOTEMPTY && errno != EEXIST) break;
    // Where the file system can exchange the two there is no moment without hooks; what was there goes with this
    // object.
    if (renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, final_.c_str(), RENAME_EXCHANGE) == 0) return;
    set_aside();
  }
  throw cannot("rename " + path_.string() + " to", final_, errno);
}

void Staging::set_aside() {
  const fs::path aside = root_ / (kAsidePrefix + final_.filename().string() + "." + owner_);
  if (rename(final_.c_str(), aside.c_str()) != 0) return;
  std::error_code ignored;
  fs::remove_all(aside, ignored);
}

void Staging::publish_file(const char* name) {
  if (rename((path_ / name).c_str(), (final_ / name).c_str()) != 0) {
    throw cannot("rename " + (path_ / name).string() + " to", final_ / name, errno);
  }
}

}  // namespace devsan::launch
