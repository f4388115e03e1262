#include "doctor/machine/folder.h"

#include <linux/magic.h>
#include <sys/statfs.h>
#include <unistd.h>

namespace devsan::doctor {
namespace {

namespace fs = std::filesystem;

std::string kind_of(const struct statfs& system) {
  constexpr long kLustre = 0x0BD00BD0;
  switch (static_cast<long>(system.f_type)) {
    case TMPFS_MAGIC:
      return "tmpfs";
    case RAMFS_MAGIC:
      return "ramfs";
    case NFS_SUPER_MAGIC:
      return "nfs";
    case CEPH_SUPER_MAGIC:
      return "ceph";
    case kLustre:
      return "lustre";
    default:
      return {};
  }
}

}  // namespace

Folder read_folder(const fs::path& path) {
  Folder folder;
  std::error_code error;
  fs::path nearest = fs::absolute(path, error).lexically_normal();
  folder.there = fs::exists(nearest, error);
  while (!fs::exists(nearest, error) && nearest.has_relative_path()) nearest = nearest.parent_path();
  folder.nearest = nearest.string();
  folder.is_directory = fs::is_directory(nearest, error);
  folder.writable = access(nearest.c_str(), W_OK | X_OK) == 0;
  struct statfs system {};
  if (statfs(nearest.c_str(), &system) == 0) {
    folder.kind = kind_of(system);
    folder.free = std::uint64_t{system.f_bavail} * static_cast<std::uint64_t>(system.f_bsize);
  }
  return folder;
}

}  // namespace devsan::doctor
