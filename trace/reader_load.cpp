// Takes a file in: its header, its sections as far as they are there, and (in reader_events.cpp) what they hold.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "trace/reader_loader.h"

namespace devsan::trace {
namespace {

// Twice what any devsan writes. More is no trace, and is not read into memory.
constexpr std::uint64_t kMaxReadable = std::uint64_t{64} << 20;
constexpr std::size_t kMaxDamage = 50;

struct SectionRule {
  SectionKind kind;
  std::uint32_t entry_size;
  const char* name;
};

// In the order of reading: a process that still runs stores what is referred to before what refers to it.
constexpr SectionRule kSections[] = {
    {SectionKind::events, 1, "events"},
    {SectionKind::threads, sizeof(ThreadRing), "threads"},
    {SectionKind::lineage, sizeof(LineageNode), "lineage"},
    {SectionKind::sites, sizeof(Site), "sites"},
    {SectionKind::operators, sizeof(StringId), "operators"},
    {SectionKind::strings, 1, "strings"},
};
static_assert(std::size(kSections) == kSectionCount);

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// How much could be read; a file that shrinks meanwhile leaves the rest as it was.
std::size_t read_at(int fd, std::span<std::byte> to, std::uint64_t offset) {
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t count = pread(fd, to.data() + done, to.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

bool all_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

// Ten thousand files are read in seconds when what is empty is left alone. A counter that is too small shows by bytes
// behind what it counts; then the whole section is read.
std::vector<std::byte> read_section(int fd, const Section& section, std::uint64_t used) {
  constexpr std::uint64_t kLookBehind = 4096;
  const std::uint64_t counted = std::min(used, section.size);
  std::vector<std::byte> bytes(std::min(counted + kLookBehind, section.size));
  read_at(fd, bytes, section.offset);
  if (!all_zero(std::span(bytes).subspan(counted))) {
    bytes.resize(section.size);
    read_at(fd, bytes, section.offset);
  }
  return bytes;
}

std::uint64_t used_bytes(const FileHeader& header, const SectionRule& rule) {
  switch (rule.kind) {
    case SectionKind::strings:
      return header.strings_used;
    case SectionKind::operators:
      return std::uint64_t{header.operators_used} * rule.entry_size;
    case SectionKind::sites:
      return std::uint64_t{header.sites_used} * rule.entry_size;
    case SectionKind::lineage:
      return std::uint64_t{header.lineage_used} * rule.entry_size;
    case SectionKind::threads:
      return std::uint64_t{header.threads_used} * rule.entry_size;
    case SectionKind::events:
      return header.events_used;
  }
  return 0;
}

Damage cannot(const char* what, int error) {
  return {0, 0, std::string(what) + ": " + std::system_category().message(error)};
}

std::optional<Damage> refuse(const FileHeader& header, std::uint64_t size) {
  constexpr std::array<char, 8> kNothing{};
  if (size >= sizeof(header.magic) && header.magic == kNothing) {
    return Damage{0, size, "the trace was never begun: its process ended before it had written anything"};
  }
  if (size < sizeof(header.magic) || header.magic != kMagic) return Damage{0, size, "this is not a devsan trace"};
  if (size < offsetof(FileHeader, header_size)) return Damage{0, size, "the file is cut off inside its header"};
  if (header.major_version != kMajorVersion) {
    const bool newer = header.major_version > kMajorVersion;
    return Damage{offsetof(FileHeader, major_version), size,
                  "the trace has format " + std::to_string(header.major_version) + "." +
                      std::to_string(header.minor_version) + ", and this devsan reads format " +
                      std::to_string(kMajorVersion) + ": " + (newer ? "a newer" : "an older") +
                      " devsan is needed to read it"};
  }
  if (size < sizeof(FileHeader)) return Damage{0, size, "the file is cut off inside its header"};
  return std::nullopt;
}

}  // namespace

std::optional<FileHeader> read_header(const std::filesystem::path& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  FileHeader header{};
  const std::size_t got = fd.get() < 0 ? 0 : read_at(fd.get(), std::as_writable_bytes(std::span(&header, 1)), 0);
  if (got == 0 || refuse(header, got)) return std::nullopt;
  bound_header_times(header);
  return header;
}

std::variant<TraceFile, Damage> TraceFile::open(const std::filesystem::path& path) {
  return Loader().load(path);
}

void TraceFile::Loader::complain(std::uint64_t offset, std::uint64_t bytes, std::string reason) {
  if (file_.damage_.size() < kMaxDamage) {
    file_.damage_.push_back({offset, bytes, std::move(reason)});
    return;
  }
  ++more_damage_;
  more_damaged_bytes_ += bytes;
}

std::variant<TraceFile, Damage> TraceFile::Loader::load(const std::filesystem::path& path) {
  file_.path_ = path;
  // Not blocking: the name may be that of a pipe that nobody writes to.
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (fd.get() < 0 || fstat(fd.get(), &status) != 0) return cannot("the file cannot be opened", errno);
  if (S_ISDIR(status.st_mode)) return cannot("the file cannot be read", EISDIR);
  if (!S_ISREG(status.st_mode)) return Damage{0, 0, "this is not a regular file"};
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size == 0) return Damage{0, 0, "the file is empty: its process ended before it had written anything"};
  if (size > kMaxReadable) return Damage{0, size, "the file is larger than any devsan trace"};

  FileHeader& header = file_.header_;
  const std::span<std::byte> header_bytes = std::as_writable_bytes(std::span(&header, 1));
  const std::size_t got = read_at(fd.get(), header_bytes, 0);
  if (got == 0) return cannot("the file cannot be read", errno);
  if (std::optional<Damage> fatal = refuse(header, got)) return *fatal;
  const auto sections = usable_sections(size);
  for (const SectionRule& rule : kSections) {
    const std::size_t index = static_cast<std::size_t>(rule.kind) - 1;
    file_.sections_[index] = read_section(fd.get(), sections[index], used_bytes(header, rule));
    // As it is by now, where the process still runs.
    if (header.close_mark == CloseMark::open) read_at(fd.get(), header_bytes, 0);
  }
  header.sections = sections;
  if (header.rank >= 0) file_.rank_ = header.rank;
  if (header.local_rank >= 0) file_.local_rank_ = header.local_rank;
  if (header.world_size > 0) file_.world_size_ = header.world_size;

  check_counters(size);
  read_events();
  bound_all_times();
  read_threads();
  if (more_damage_ > 0) {
    file_.damage_.push_back({0, more_damaged_bytes_, "and " + std::to_string(more_damage_) + " more such places"});
  }
  return std::move(file_);
}

// The sections of the header, cut to what the file holds of them; of size 0 where nothing can be made of one.
std::array<Section, kSectionCount> TraceFile::Loader::usable_sections(std::uint64_t size) {
  const FileHeader& header = file_.header_;
  if (header.file_size > size) {
    complain(size, header.file_size - size, "the file is cut off: its end is missing");
  } else if (header.file_size < size) {
    complain(header.file_size, size - header.file_size, "the file is longer than it says it is");
  }
  std::array<Section, kSectionCount> sections{};
  for (const SectionRule& rule : kSections) {
    const std::size_t index = static_cast<std::size_t>(rule.kind) - 1;
    const Section& told = header.sections[index];
    Section& usable = sections[index];
    usable = {rule.kind, rule.entry_size, 0, 0};
    const bool sound = told.kind == rule.kind && told.entry_size == rule.entry_size &&
                       told.offset >= sizeof(FileHeader) && told.size <= kMaxReadable && told.offset <= kMaxReadable;
    if (!sound) {
      complain(offsetof(FileHeader, sections) + index * sizeof(Section), 0,
               std::string("the header does not say where the section of ") + rule.name + " is");
      continue;
    }
    usable.offset = std::min(told.offset, size);
    usable.size = std::min(told.size, size - usable.offset);
  }
  return sections;
}

// Entries carry their own marks, so that a wrong counter costs nothing but this sentence.
void TraceFile::Loader::check_counters(std::uint64_t file_size) {
  for (const SectionRule& rule : kSections) {
    const Section& section = file_.header_.sections[static_cast<std::size_t>(rule.kind) - 1];
    const std::uint64_t used = used_bytes(file_.header_, rule);
    const bool cut_off = section.offset + section.size == file_size && file_.header_.file_size > file_size;
    if (section.size == 0 || cut_off || used <= section.size) continue;
    complain(section.offset, 0,
             std::string("the header counts ") + std::to_string(used) + " bytes in the section of " + rule.name +
                 ", which holds " + std::to_string(section.size));
  }
}

}  // namespace devsan::trace
