#include "launch/installation.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "launch/messages.h"
#include "preload/hooks_cache.h"

namespace devsan::launch {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> link_directories() {
  std::vector<fs::path> found;
  char cache[kCachePathSize];
  if (find_cache_root(cache, sizeof cache)) found.emplace_back(cache);
  const std::string own = "devsan-" + std::to_string(geteuid());
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && runtime[0] == '/') found.push_back(fs::path(runtime) / own);
  found.push_back(fs::path("/tmp") / own);
  return found;
}

// Another user could have made the directory first, and would then decide what gets loaded.
bool make_private_directory(const fs::path& directory) {
  std::error_code ignored;
  fs::create_directories(directory.parent_path(), ignored);
  mkdir(directory.c_str(), 0700);
  return is_private_directory(directory.c_str());
}

bool place_link(const fs::path& target, const fs::path& link) {
  std::error_code error;
  if (fs::read_symlink(link, error) == target) return true;
  const fs::path fresh = link.string() + "." + std::to_string(getpid());
  fs::remove(fresh, error);
  fs::create_symlink(target, fresh, error);
  if (error) return false;
  fs::rename(fresh, link, error);
  return !error;
}

}  // namespace

Installation find_installation() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) throw Failure("cannot read /proc/self/exe: " + error.message());
  const fs::path prefix = program.parent_path().parent_path();
  Installation found;
  found.program = program;
  found.library = prefix / "lib/devsan/libdevsan.so";
  found.sources = prefix / "share/devsan/src";
  found.archives = prefix / "lib/devsan/inprocess";
  if (!fs::exists(found.library, error)) {
    throw Failure(found.library.string() + " is missing: this installation of devsan is incomplete");
  }
  return found;
}

bool fits_in_preload(const std::string& path) {
  return path.find_first_of(" :$\t\n") == std::string::npos;
}

std::string preload_name(const fs::path& library) {
  if (fits_in_preload(library.string())) return library.string();
  // The name tells installations apart, so that two of them never fight over one link.
  char name[64];
  std::snprintf(name, sizeof name, "libdevsan-%016zx.so", std::hash<std::string>{}(library.string()));
  for (const fs::path& directory : link_directories()) {
    const fs::path link = directory / name;
    if (fits_in_preload(link.string()) && make_private_directory(directory) && place_link(library, link)) {
      return link.string();
    }
  }
  throw Failure("LD_PRELOAD cannot contain the path " + library.string() +
                ", and there is no private directory for a link to it");
}

}  // namespace devsan::launch
