#include "hooks/inprocess/source/archive_member.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>

#include "hooks/inprocess/common/file_bytes.h"

namespace devsan::hooks {

namespace {

constexpr std::size_t kMaxMemberBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxDirectoryBytes = std::size_t{16} << 20;

template <class T>
T number_at(std::string_view bytes, std::size_t offset) noexcept {
  T value{};
  if (offset + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

class File {
 public:
  explicit File(const std::string& path) noexcept : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat status {};
    if (fd_ >= 0 && ::fstat(fd_, &status) == 0 && S_ISREG(status.st_mode)) size_ = status.st_size;
  }
  ~File() {
    if (fd_ >= 0) ::close(fd_);
    errno = saved_errno_;
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  std::int64_t size() const noexcept { return size_; }
  // Shorter where the file ends.
  std::string read(std::int64_t offset, std::size_t size) const {
    if (offset < 0) return {};
    std::string bytes(size, 0);
    bytes.resize(read_bytes(fd_, bytes.data(), size, offset));
    return bytes;
  }

 private:
  const int saved_errno_ = errno;
  int fd_;
  std::int64_t size_ = 0;
};

// The end of the central directory: 22 bytes and a comment. A program may stand before the archive in its file, which
// the offsets in it do not count.
struct Directory {
  std::string entries;
  std::int64_t start_of_archive = 0;
};

std::optional<Directory> directory_of(const File& file) {
  constexpr std::size_t kEndBytes = 22;
  constexpr std::int64_t kLongestComment = 65535;
  const std::int64_t from = std::max<std::int64_t>(0, file.size() - kLongestComment - std::int64_t{kEndBytes});
  const std::string tail = file.read(from, static_cast<std::size_t>(file.size() - from));
  const std::size_t at = tail.rfind("PK\5\6");
  if (at == tail.npos || at + kEndBytes > tail.size()) return std::nullopt;
  const auto size = number_at<std::uint32_t>(tail, at + 12);
  const auto offset = number_at<std::uint32_t>(tail, at + 16);
  const std::int64_t begin = from + static_cast<std::int64_t>(at) - size;
  if (size > kMaxDirectoryBytes || begin < offset) return std::nullopt;
  return Directory{file.read(begin, size), begin - offset};
}

struct Member {
  std::uint16_t method = 0;
  std::uint32_t packed = 0;
  std::uint32_t size = 0;
  std::int64_t header = 0;
};

std::optional<Member> find_member(const Directory& directory, std::string_view name) {
  constexpr std::size_t kEntryBytes = 46;
  const std::string_view entries = directory.entries;
  for (std::size_t at = 0; entries.substr(at).starts_with("PK\1\2");) {
    const auto name_bytes = number_at<std::uint16_t>(entries, at + 28);
    if (at + kEntryBytes <= entries.size() && entries.substr(at + kEntryBytes, name_bytes) == name) {
      return Member{number_at<std::uint16_t>(entries, at + 10), number_at<std::uint32_t>(entries, at + 20),
                    number_at<std::uint32_t>(entries, at + 24),
                    directory.start_of_archive + number_at<std::uint32_t>(entries, at + 42)};
    }
    at += kEntryBytes + name_bytes + number_at<std::uint16_t>(entries, at + 30) +
          number_at<std::uint16_t>(entries, at + 32);
    if (at > entries.size()) break;
  }
  return std::nullopt;
}

// z_stream of zlib, which has been the same since 1.0.
struct Stream {
  const char* input;
  unsigned input_left;
  unsigned long input_total;
  char* output;
  unsigned output_left;
  unsigned long output_total;
  const char* message;
  void* state;
  void* allocate;
  void* free;
  void* opaque;
  int data_type;
  unsigned long check;
  unsigned long reserved;
};

// By the zlib that the process has loaded, as it must have to import from such an archive.
std::string inflated(const std::string& packed, std::size_t size) {
  void* library = ::dlopen("libz.so.1", RTLD_LAZY | RTLD_NOLOAD);
  void* const from = library != nullptr ? library : RTLD_DEFAULT;
  auto* begin = reinterpret_cast<int (*)(Stream*, int, const char*, int)>(::dlsym(from, "inflateInit2_"));
  auto* run = reinterpret_cast<int (*)(Stream*, int)>(::dlsym(from, "inflate"));
  auto* end = reinterpret_cast<int (*)(Stream*)>(::dlsym(from, "inflateEnd"));
  std::string text;
  Stream stream{};
  constexpr int kRawWindow = -15;
  constexpr int kFinish = 4;
  if (begin != nullptr && run != nullptr && end != nullptr && begin(&stream, kRawWindow, "1", sizeof stream) == 0) {
    text.resize(size);
    stream.input = packed.data();
    stream.input_left = static_cast<unsigned>(packed.size());
    stream.output = text.data();
    stream.output_left = static_cast<unsigned>(size);
    run(&stream, kFinish);
    text.resize(size - stream.output_left);
    end(&stream);
  }
  if (library != nullptr) ::dlclose(library);
  return text;
}

std::string text_of_member(const File& file, const Member& member) {
  constexpr std::int64_t kHeaderBytes = 30;
  constexpr std::uint16_t kStored = 0;
  constexpr std::uint16_t kDeflated = 8;
  if (member.size > kMaxMemberBytes || member.packed > kMaxMemberBytes) return {};
  const std::string header = file.read(member.header, kHeaderBytes);
  if (!header.starts_with("PK\3\4")) return {};
  const std::int64_t begin =
      member.header + kHeaderBytes + number_at<std::uint16_t>(header, 26) + number_at<std::uint16_t>(header, 28);
  std::string packed = file.read(begin, member.packed);
  if (member.method == kStored) return packed;
  return member.method == kDeflated ? inflated(packed, member.size) : std::string();
}

}  // namespace

std::string archive_member(std::string_view path) {
  for (std::size_t slash = path.find('/', 1); slash != path.npos; slash = path.find('/', slash + 1)) {
    const std::string archive(path.substr(0, slash));
    struct stat status {};
    const int saved_errno = errno;
    const bool there = ::stat(archive.c_str(), &status) == 0;
    errno = saved_errno;
    if (!there) return {};
    if (!S_ISREG(status.st_mode)) continue;
    const File file(archive);
    const auto directory = directory_of(file);
    const auto member = directory ? find_member(*directory, path.substr(slash + 1)) : std::nullopt;
    return member ? text_of_member(file, *member) : std::string();
  }
  return {};
}

}  // namespace devsan::hooks
