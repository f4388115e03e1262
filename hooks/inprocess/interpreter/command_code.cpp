#include "hooks/inprocess/interpreter/command_code.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "hooks/inprocess/common/file_bytes.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"

namespace devsan::hooks {

namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

// The code objects of a `-c` program: its body's, and those that are constants of them. They live as long as the body,
// which runs to the end.
struct CommandCode {
  std::array<const void*, 1024> codes{};
  std::size_t count = 0;

  bool has(const void* code) const noexcept { return std::find(codes.begin(), end(), code) != end(); }
  const void* const* end() const noexcept { return codes.data() + count; }

  void add(const void* body) noexcept {
    codes[count++] = body;
    for (std::size_t next = 0; next < count; ++next) {
      const void* constants = code_constants(codes[next]);
      for (std::ptrdiff_t k = 0; const void* constant = tuple_entry(constants, k); ++k) {
        if (type_of(constant) == python.code_type && count < codes.size()) codes[count++] = constant;
      }
    }
  }
};
constinit CommandCode command_code{};

bool has_file(const void* code, std::string_view name) noexcept {
  return is_name(field<const void*>(code, code_members.filename), name);
}

// One more than kMaxBytes where there are more, so that a text that was cut is longer than any that is kept.
std::string bytes_of(int fd) {
  std::string bytes(kMaxBytes + 1, 0);
  bytes.resize(read_bytes(fd, bytes.data(), bytes.size()));
  return bytes;
}

std::vector<std::string> command_line() {
  const int saved_errno = errno;
  const int fd = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  const std::string bytes = fd >= 0 ? bytes_of(fd) : std::string();
  if (fd >= 0) ::close(fd);
  errno = saved_errno;
  std::vector<std::string> words;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\0', at), bytes.size());
    words.push_back(bytes.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

}  // namespace

void learn_command_code(const void* frame) noexcept {
  const void* outermost = nullptr;
  for (; frame != nullptr; frame = frame_previous(frame)) {
    const void* code = frame_code(frame);
    if (code != nullptr && type_of(code) == python.code_type) outermost = code;
  }
  if (outermost != nullptr && has_file(outermost, kCommandFile) && is_module_body(outermost)) {
    command_code.add(outermost);
  }
}

bool is_executed(const void* code) noexcept {
  return command_code.count != 0 && has_file(code, kCommandFile) && !command_code.has(code);
}

// Python's options can be written as one word (`-Bc`), and some take the next word along.
std::string text_of_command() {
  if (command_code.count == 0) return {};
  const std::vector<std::string> words = command_line();
  for (std::size_t k = 1; k < words.size() && words[k].size() > 1 && words[k].front() == '-'; ++k) {
    const std::size_t letter = words[k].find_first_of("cmWX", 1);
    if (words[k] == "--check-hash-based-pycs") ++k;
    if (words[k].starts_with("--") || letter == std::string::npos) continue;
    const bool in_next = letter + 1 == words[k].size();
    if (words[k][letter] == 'm') return {};
    if (words[k][letter] == 'c' && !in_next) return words[k].substr(letter + 1);
    if (words[k][letter] == 'c') return k + 1 < words.size() ? words[k + 1] : std::string();
    if (in_next) ++k;
  }
  return {};
}

std::string text_of_input() {
  const int saved_errno = errno;
  struct stat status {};
  const bool is_file = ::fstat(STDIN_FILENO, &status) == 0 && S_ISREG(status.st_mode);
  std::string text = is_file ? bytes_of(STDIN_FILENO) : std::string();
  errno = saved_errno;
  return text;
}

}  // namespace devsan::hooks
