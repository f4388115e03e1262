#include "report/findings/gather.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "trace/reader.h"

namespace devsan::report {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBlock = std::size_t{64} << 10;
constexpr int kMostTries = 9999;

class OpenFile {
 public:
  explicit OpenFile(int fd) : fd_(fd) {}
  OpenFile(OpenFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  OpenFile& operator=(OpenFile&&) = delete;
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_;
};

using Block = std::array<char, kBlock>;

// How much there was, up to a whole block; -1 where reading failed.
ssize_t read_block(int fd, Block& block) {
  std::size_t done = 0;
  while (done < block.size()) {
    const ssize_t count = read(fd, block.data() + done, block.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return static_cast<ssize_t>(done);
}

bool write_at(int fd, const char* bytes, std::size_t size, off_t at) {
  while (size > 0) {
    const ssize_t count = pwrite(fd, bytes, size, at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes += count;
    size -= static_cast<std::size_t>(count);
    at += count;
  }
  return true;
}

// Blocks of zeros are left out, and read as zeros all the same.
bool copy_bytes(int from, int to) {
  Block block;
  off_t at = 0;
  while (true) {
    const ssize_t count = read_block(from, block);
    if (count < 0) return false;
    if (count == 0) break;
    const std::size_t size = static_cast<std::size_t>(count);
    const bool zero = std::all_of(block.begin(), block.begin() + count, [](char c) { return c == 0; });
    if (!zero && !write_at(to, block.data(), size, at)) return false;
    at += count;
  }
  return ftruncate(to, at) == 0 && fsync(to) == 0;
}

bool same_bytes(const fs::path& one, const fs::path& other) {
  const OpenFile left(open(one.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const OpenFile right(open(other.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  Block a;
  Block b;
  while (left.is_open() && right.is_open()) {
    const ssize_t count = read_block(left.fd(), a);
    if (count < 0 || read_block(right.fd(), b) != count) return false;
    if (count == 0) return true;
    if (std::memcmp(a.data(), b.data(), static_cast<std::size_t>(count)) != 0) return false;
  }
  return false;
}

// "rank0.12.devsan" with 1: "rank0.12-1.devsan"
fs::path numbered(const fs::path& name, int number) {
  if (number == 0) return name;
  return name.stem().string() + "-" + std::to_string(number) + name.extension().string();
}

std::string why() {
  return std::system_category().message(errno);
}

class Gathering {
 public:
  explicit Gathering(const fs::path& into) : into_(into) {}

  void add(const fs::path& file) {
    const OpenFile from(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    if (!from.is_open() || fstat(from.fd(), &status) != 0) return complain(file, why());
    if (!S_ISREG(status.st_mode)) return complain(file, "this is not a regular file");
    fs::path target;
    const std::optional<OpenFile> to = make_target(file, target);
    if (!to) return;
    if (!copy_bytes(from.fd(), to->fd())) {
      complain(target, why());
      unlink(target.c_str());
      return;
    }
    // What the newest run is, of those without an end, is told by when their files were written.
    const timespec times[] = {status.st_atim, status.st_mtim};
    futimens(to->fd(), times);
    ++result_.copied;
    check(target);
  }

  Gathered take() { return std::move(result_); }

 private:
  void complain(const fs::path& file, const std::string& reason) {
    result_.complaints.push_back(file.string() + ": " + reason);
  }

  // A new file, never one that is there already; none where the same trace lies there, or none can be made.
  std::optional<OpenFile> make_target(const fs::path& file, fs::path& target) {
    for (int number = 0; number <= kMostTries; ++number) {
      target = into_ / numbered(file.filename(), number);
      OpenFile made(open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
      if (made.is_open()) return made;
      if (errno != EEXIST) {
        complain(target, why());
        return std::nullopt;
      }
      if (same_bytes(file, target)) {
        ++result_.already_there;
        return std::nullopt;
      }
    }
    complain(file, "too many traces of this name");
    return std::nullopt;
  }

  void check(const fs::path& file) {
    const auto opened = trace::TraceFile::open(file);
    if (const auto* damage = std::get_if<trace::Damage>(&opened)) return complain(file, damage->reason);
    for (const trace::Damage& damage : std::get<trace::TraceFile>(opened).damage()) complain(file, damage.reason);
  }

  fs::path into_;
  Gathered result_;
};

}  // namespace

Gathered gather_traces(const std::vector<fs::path>& files, const fs::path& into) {
  Gathering gathering(into);
  for (const fs::path& file : files) gathering.add(file);
  return gathering.take();
}

}  // namespace devsan::report
