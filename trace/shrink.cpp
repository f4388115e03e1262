#include "trace/shrink.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "trace/file_layout.h"
#include "trace/process_end.h"

namespace devsan::trace {
namespace {

constexpr std::uint64_t kPage = 4096;

std::uint64_t used_bytes(const FileHeader& header, SectionKind kind) noexcept {
  switch (kind) {
    case SectionKind::strings:
      return header.strings_used;
    case SectionKind::operators:
      return std::uint64_t{header.operators_used} * sizeof(StringId);
    case SectionKind::sites:
      return std::uint64_t{header.sites_used} * sizeof(Site);
    case SectionKind::lineage:
      return std::uint64_t{header.lineage_used} * sizeof(LineageNode);
    case SectionKind::threads:
      return std::uint64_t{header.threads_used} * sizeof(ThreadRing);
    case SectionKind::events:
      return header.events_used;
  }
  return header.file_size;  // a section of a later version
}

std::uint64_t give_back_section(int fd, const FileHeader& header, const Section& section) noexcept {
  const std::uint64_t used = used_bytes(header, section.kind);
  if (section.offset > header.file_size || section.size > header.file_size - section.offset || used > section.size) {
    return 0;  // damaged
  }
  const std::uint64_t begin = (section.offset + used + kPage - 1) / kPage * kPage;
  const std::uint64_t end = (section.offset + section.size) / kPage * kPage;
  if (end <= begin) return 0;
  const int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  const int failed = fallocate(fd, mode, static_cast<off_t>(begin), static_cast<off_t>(end - begin));
  return failed == 0 ? end - begin : 0;
}

}  // namespace

std::uint64_t give_back_unused(const char* path) noexcept {
  const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return 0;
  std::uint64_t bytes = 0;
  FileHeader header;
  struct stat status {};
  const bool whole = read(fd, &header, sizeof header) == static_cast<ssize_t>(sizeof header) &&
                     fstat(fd, &status) == 0 && static_cast<std::uint64_t>(status.st_size) == header.file_size;
  if (whole && header.magic == kMagic && header.major_version == kMajorVersion &&
      has_ended(header).value_or(false)) {  // a process that runs may still write
    for (const Section& section : header.sections) bytes += give_back_section(fd, header, section);
  }
  close(fd);
  return bytes;
}

}  // namespace devsan::trace
