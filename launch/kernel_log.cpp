#include "launch/kernel_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>

namespace devsan::launch {
namespace {

// PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h.
constexpr std::string_view kMachinesPids = "pid:[4026531836]";

// A message is at most 1,024 bytes; with what is put before it, and its dictionary, a record fits into 8 KiB.
constexpr std::size_t kRecordBytes = 8192;

// More than the ring of any machine holds: a log that is written as fast as it is read ends, too.
constexpr int kMostRecords = 1 << 17;

bool pids_are_the_machines() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/ns/pid", error) == kMachinesPids;
}

template <class Number>
std::optional<Number> number_at(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

}  // namespace

// "priority,sequence,time,flags;text": what is above the priority's low three bits says who speaks, and the kernel is
// 0. A program that writes to the log cannot give itself that number. The text is mm/oom_kill.c's: "Out of memory:
// Killed process 17 (python) ...", or "Memory cgroup out of memory: ...".
std::optional<std::uint32_t> killed_for_memory(std::string_view record) {
  constexpr std::string_view kKilled = "ut of memory: Killed process ";
  constexpr int kFirstOfPrograms = 8;
  const std::optional<int> priority = number_at<int>(record);
  const std::size_t text = record.find(';');
  if (!priority || *priority >= kFirstOfPrograms || text == std::string_view::npos) return std::nullopt;
  const std::size_t killed = record.find(kKilled, text);
  const std::size_t line_end = record.find('\n', text);
  if (killed == std::string_view::npos || killed > line_end) return std::nullopt;
  return number_at<std::uint32_t>(record.substr(killed + kKilled.size()));
}

KernelLog::KernelLog() {
  if (!pids_are_the_machines()) return;
  fd_ = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd_ >= 0) lseek(fd_, 0, SEEK_END);
}

KernelLog::~KernelLog() {
  if (fd_ >= 0) close(fd_);
}

std::set<std::uint32_t> KernelLog::killed_for_memory() {
  std::set<std::uint32_t> killed;
  std::array<char, kRecordBytes> record;
  for (int records = 0; fd_ >= 0 && records < kMostRecords; ++records) {
    const ssize_t length = read(fd_, record.data(), record.size());
    if (length < 0 && (errno == EPIPE || errno == EINTR)) continue;  // EPIPE: some were overwritten before this
    if (length <= 0) break;
    const auto pid = launch::killed_for_memory({record.data(), static_cast<std::size_t>(length)});
    if (pid) killed.insert(*pid);
  }
  return killed;
}

}  // namespace devsan::launch
