#include "hooks/inprocess/events/failure_notes.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "hooks/inprocess/common/runtime.h"
#include "trace/clock.h"
#include "trace/fixed_text.h"

namespace devsan::hooks {

namespace {

constexpr std::string_view kPrefix = "failed.rank";
constexpr int kMostEntries = 1 << 15;  // of the directory
constexpr std::int64_t kMilliseconds = 1'000'000;
constexpr std::size_t kMostText = 300;

std::atomic<int> own_rank{-1};
std::atomic<int> world_size{0};
std::atomic<std::int64_t> joined_ns{0};  // when the group of all ranks was made

using NotePath = FixedText<4352>;
using NoteText = FixedText<512>;
using HostName = FixedText<65>;

// One word.
HostName own_host() noexcept {
  char name[65] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return HostName("-");
  const std::string_view text(name);
  return HostName(text.substr(0, text.find(' ')));
}

// "<time> <step> <1 where it comes from a collective> <host> <text>"
struct FailureNote {
  int rank = 0;
  std::int64_t time_ns = 0;
  std::uint64_t step = 0;
  bool from_collective = false;
  HostName host;
  NoteText text;
};

void leave_note(const OwnFailure& failure, int rank) noexcept {
  NotePath path(runtime.recorder->directory());
  path.append("/").append(kPrefix).append_number(static_cast<std::uint64_t>(rank));
  path.append(".").append_number(static_cast<std::uint64_t>(::getpid()));
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return;
  NoteText text;
  text.append_number(static_cast<std::uint64_t>(failure.time_ns)).append(" ").append_number(failure.step);
  text.append(failure.from_collective ? " 1 " : " 0 ").append(own_host().view()).append(" ").append(failure.type);
  if (!failure.message.empty() && !failure.message_is_arguments) text.append(": ");
  text.append(failure.message.substr(0, kMostText));
  [[maybe_unused]] const ssize_t written = ::write(file, text.c_str(), text.view().size());
  ::close(file);
}

template <class Number>
bool take_number(std::string_view& text, Number& number) noexcept {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data() + text.size() || *end != ' ') return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return true;
}

std::optional<FailureNote> read_note(int directory, const char* name) noexcept {
  FailureNote note;
  const char* const rank = name + kPrefix.size();
  if (std::from_chars(rank, rank + std::strlen(rank), note.rank).ec != std::errc()) return std::nullopt;
  const int file = ::openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  char buffer[512];
  const ssize_t length = ::read(file, buffer, sizeof buffer);
  ::close(file);
  if (length <= 0) return std::nullopt;
  std::string_view text(buffer, static_cast<std::size_t>(length));
  int from_collective = 0;
  if (!take_number(text, note.time_ns) || !take_number(text, note.step) || !take_number(text, from_collective)) {
    return std::nullopt;
  }
  const std::size_t host_end = text.find(' ');
  if (host_end == text.npos) return std::nullopt;
  note.from_collective = from_collective != 0;
  note.host.append(text.substr(0, host_end));
  text.remove_prefix(host_end + 1);
  note.text.append(text);
  return note;
}

bool comes_before(const FailureNote& one, const FailureNote& other) noexcept {
  if (one.from_collective != other.from_collective) return other.from_collective;
  return one.time_ns < other.time_ns;
}

// Of those that were made since the job began.
std::optional<FailureNote> first_note(std::int64_t since_ns) noexcept {
  DIR* const directory = ::opendir(runtime.recorder->directory());
  if (directory == nullptr) return std::nullopt;
  std::optional<FailureNote> first;
  for (int entries = 0; entries < kMostEntries; ++entries) {
    const dirent* const entry = ::readdir(directory);
    if (entry == nullptr) break;
    if (!std::string_view(entry->d_name).starts_with(kPrefix)) continue;
    const std::optional<FailureNote> note = read_note(::dirfd(directory), entry->d_name);
    if (note && note->time_ns >= since_ns && (!first || comes_before(*note, *first))) first = note;
  }
  ::closedir(directory);
  return first;
}

void say_who_was_first(const FailureNote& first, std::int64_t own_ns) noexcept {
  FixedText<1024> text("rank ");
  text.append_number(static_cast<std::uint64_t>(first.rank)).append(" failed first, in step ");
  text.append_number(first.step).append(": it raised ").append(first.text.view());
  // The clocks of two hosts may be apart by more than that.
  if (own_ns > first.time_ns && first.host.view() == own_host().view()) {
    text.append(" (").append_number(static_cast<std::uint64_t>((own_ns - first.time_ns) / kMilliseconds));
    text.append(" ms before this rank)");
  }
  runtime.host->say(text.c_str());
}

bool say_if_another_was_first(std::int64_t own_ns) noexcept {
  const std::optional<FailureNote> first = first_note(joined_ns.load(std::memory_order_relaxed));
  if (!first || first->rank == 0 || first->from_collective) return false;
  say_who_was_first(*first, own_ns);
  return true;
}

// What rank 0 has still to say: when it failed, and in which process, for a fork child has the handlers of its parent.
std::int64_t unsaid_ns = 0;
pid_t unsaid_by = 0;

void say_at_exit(int, void*) {
  if (unsaid_by == ::getpid()) say_if_another_was_first(unsaid_ns);
}

}  // namespace

void note_rank(int rank, int size) noexcept {
  if (size <= world_size.load(std::memory_order_relaxed)) return;
  world_size.store(size, std::memory_order_relaxed);
  own_rank.store(rank, std::memory_order_relaxed);
  joined_ns.store(trace::wall_clock_ns(), std::memory_order_relaxed);
}

void tell_other_ranks(const OwnFailure& failure) noexcept {
  const int rank = own_rank.load(std::memory_order_relaxed);
  if (world_size.load(std::memory_order_relaxed) < 2 || rank < 0) return;
  leave_note(failure, rank);
  if (rank != 0 || say_if_another_was_first(failure.time_ns)) return;
  // A rank that destroys its groups on its way out is felt by the others before it leaves its note.
  unsaid_ns = failure.time_ns;
  unsaid_by = ::getpid();
  ::on_exit(say_at_exit, nullptr);
}

}  // namespace devsan::hooks
