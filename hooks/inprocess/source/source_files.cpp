#include "hooks/inprocess/source/source_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "hooks/inprocess/common/file_bytes.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/source/texts_without_file.h"
#include "trace/line_brackets.h"

namespace devsan::hooks {

SourceFiles::~SourceFiles() {
  unmap();
}

void SourceFiles::unmap() noexcept {
  if (text_ != nullptr) ::munmap(text_, kMaxFileBytes);
  text_ = nullptr;
  mapped_ = trace::StringId::none;
}

namespace {

// Opened for reading; -1 where it is no regular file, or a larger one.
int open_file(std::string_view name, std::size_t max_bytes) noexcept {
  char path[4096];
  if (name.empty() || name.front() != '/' || name.size() >= sizeof path) return -1;
  path[name.copy(path, sizeof path - 1)] = 0;
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat status {};
  if (fd < 0 || (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= off_t(max_bytes))) return fd;
  ::close(fd);
  return -1;
}

}  // namespace

// Read into anonymous memory instead of mapped: a file that shrinks meanwhile must not raise SIGBUS.
bool SourceFiles::map(trace::StringId file) noexcept {
  if (file == mapped_) return text_ != nullptr;
  unmap();
  mapped_ = file;
  const int saved_errno = errno;
  const int fd = open_file(runtime.recorder->string(file), kMaxFileBytes);
  const std::string_view elsewhere = fd < 0 ? text_without_file(file) : std::string_view();
  if (fd >= 0 || !elsewhere.empty()) {
    void* memory =
        ::mmap(nullptr, kMaxFileBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory != MAP_FAILED) {
      text_ = static_cast<char*>(memory);
      size_ = fd >= 0 ? read_bytes(fd, text_, kMaxFileBytes) : elsewhere.copy(text_, kMaxFileBytes);
    }
  }
  if (fd >= 0) ::close(fd);
  errno = saved_errno;
  return text_ != nullptr;
}

void SourceFiles::keep(trace::StringId file, int line) noexcept {
  if (!map(file)) return keep_line_soon(file, line);
  int open = 0;
  for (int k = line; k < line + trace::kMaxStatementLines; ++k) {
    const trace::LineBrackets brackets = trace::brackets_of(text(file, k, true));
    open += brackets.opened;
    if (brackets.in_string || open <= 0) return;
  }
}

std::string_view SourceFiles::text(trace::StringId file, int line, bool keep) noexcept {
  if (file == trace::StringId::none || line <= 0 || !map(file)) return {};
  const char* at = text_;
  const char* const end = text_ + size_;
  for (int k = 1; k < line && at != nullptr && at < end; ++k) {
    at = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
    if (at != nullptr) ++at;
  }
  if (at == nullptr || at >= end) return {};
  const auto* stop = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
  const auto length = static_cast<std::size_t>((stop != nullptr ? stop : end) - at);
  std::string_view text(at, std::min(length, kMaxLineBytes));
  if (text.ends_with('\r')) text.remove_suffix(1);
  if (keep) runtime.recorder->add_source_line(file, line, text);
  return text;
}

std::string_view SourceFiles::part(const trace::Position& position) noexcept {
  if (position.column < 0 || position.end_column <= position.column || position.end_line != position.line) return {};
  const std::string_view line = text(position.file, position.line, false);
  const auto begin = static_cast<std::size_t>(position.column);
  const auto end = static_cast<std::size_t>(position.end_column);
  return end <= line.size() ? line.substr(begin, end - begin) : std::string_view();
}

}  // namespace devsan::hooks
