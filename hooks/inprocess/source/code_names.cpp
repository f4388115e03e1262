#include "hooks/inprocess/source/code_names.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/interpreter/code_table.h"
#include "hooks/inprocess/interpreter/command_code.h"
#include "hooks/inprocess/interpreter/python_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/source/python_scopes.h"
#include "hooks/inprocess/source/source_files.h"

namespace devsan::hooks {

namespace {

constexpr std::size_t kMaxName = 1024;

// Names that were read from source, by the number of their code object, which no other one ever has. An entry is one
// word, so it is never half of another; where two meet, the later one stays.
class NamesRead {
 public:
  trace::StringId find(std::uint32_t number) const noexcept {
    const std::uint64_t entry = entries_[number % kEntries].load(std::memory_order_relaxed);
    return entry >> 32 == number ? trace::StringId{static_cast<std::uint32_t>(entry)} : trace::StringId::none;
  }
  void put(std::uint32_t number, trace::StringId name) noexcept {
    const std::uint64_t entry = std::uint64_t{number} << 32 | static_cast<std::uint32_t>(name);
    entries_[number % kEntries].store(entry, std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t kEntries = 4096;
  std::array<std::atomic<std::uint64_t>, kEntries> entries_{};
};

constinit NamesRead names_read{};

std::string_view text_member(const void* code, std::ptrdiff_t offset, char* buffer, std::size_t size) noexcept {
  return text_of(field<const void*>(code, offset), buffer, size);
}

// "Net.forward" of "Net.torch_dynamo_resume_in_forward_at_18", a function that torch.compile makes of what is left of
// one where it had to stop reading; it has the lines of that one. Any other name as it is.
std::string_view without_resumption(std::string_view name, char (&buffer)[kMaxName]) noexcept {
  constexpr std::string_view kPrefix = "torch_dynamo_resume_in_";
  const std::size_t prefix = name.rfind(kPrefix);
  const std::size_t line = name.rfind("_at_");
  if (prefix == name.npos || line == name.npos || line <= prefix + kPrefix.size() || name.size() > kMaxName) {
    return name;
  }
  const std::size_t begin = prefix + kPrefix.size();
  std::memcpy(buffer, name.data(), prefix);
  std::memcpy(buffer + prefix, name.data() + begin, line - begin);
  return {buffer, prefix + line - begin};
}

trace::StringId read_name(const void* code) noexcept {
  char plain_buffer[kMaxName];
  char buffer[kMaxName];
  const std::string_view plain = text_member(code, code_members.name, plain_buffer, sizeof plain_buffer);
  SourceFiles files;
  const int line = field<int>(code, code_members.first_line);
  const std::string_view name = qualified_name_in(files.whole(file_of(code)), line, plain, buffer);
  return runtime.recorder->intern_string(name.empty() ? plain : name);
}

}  // namespace

// Python names the main script as the command line did, relative to the directory that the process was started in.
trace::StringId file_named(std::string_view file) noexcept {
  const std::string_view start = directories.start;
  char path[4096];
  if (!file.starts_with('/') && !file.starts_with('<') && !start.empty() &&
      start.size() + file.size() + 2 < sizeof path) {
    const int length = std::snprintf(path, sizeof path, "%s/%.*s", directories.start, int(file.size()), file.data());
    const int saved_errno = errno;
    if (::access(path, F_OK) == 0) file = {path, static_cast<std::size_t>(length)};
    errno = saved_errno;
  }
  return runtime.recorder->intern_string(file);
}

trace::StringId file_of(const void* code) noexcept {
  char buffer[kMaxName];
  return file_named(is_executed(code) ? kExecutedFile
                                      : text_member(code, code_members.filename, buffer, sizeof buffer));
}

trace::StringId qualified_name(const void* code) noexcept {
  if (code_members.qualified_name != 0) {
    char buffer[kMaxName];
    const std::string_view name = text_member(code, code_members.qualified_name, buffer, sizeof buffer);
    char written[kMaxName];
    return runtime.recorder->intern_string(without_resumption(name, written));
  }
  code_table.marks(code);  // gives it a number, if it has none
  const std::uint32_t number = code_table.number(code);
  trace::StringId name = names_read.find(number);
  if (number != 0 && name != trace::StringId::none) return name;
  name = read_name(code);
  if (number != 0) names_read.put(number, name);
  return name;
}

}  // namespace devsan::hooks
