#include "hooks/inprocess/events/stop.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdio>

#include "hooks/inprocess/common/runtime.h"
#include "trace/clock.h"
#include "trace/not_simulated.h"

namespace devsan::hooks {
namespace {

// A program whose optimizer is none of torch's, or that accumulates gradients for longer, ends all the same.
constexpr std::uint32_t kIterationsWithoutOptimizer = 64;

constexpr std::int64_t kPatienceNs = 60'000'000'000;
constexpr unsigned kPauseMicroseconds = 20'000;

bool is_enough(std::uint32_t step) noexcept {
  const int wanted = runtime.host->options.stop_after;
  if (wanted <= 0) return false;
  const std::uint32_t made = runtime.recorder->optimizer_steps();
  return made >= static_cast<std::uint32_t>(wanted) || (made == 0 && step >= kIterationsWithoutOptimizer);
}

bool read_header(const char* path, trace::FileHeader& header) noexcept {
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return false;
  const ssize_t got = pread(file, &header, sizeof header, 0);
  close(file);
  return got == static_cast<ssize_t>(sizeof header) && header.magic == trace::kMagic;
}

// Or ended by itself, having trained: nobody has to wait for it.
bool has_stopped(const trace::FileHeader& header) noexcept {
  using trace::CloseMark;
  if (header.close_mark == CloseMark::stopped) return true;
  return header.optimizer_steps > 0 && header.close_mark != CloseMark::open && header.close_mark != CloseMark::executed;
}

// The processes of this run that have stopped, by their traces.
std::int32_t stopped_processes(const trace::FileHeader& own) noexcept {
  DIR* const directory = opendir(runtime.recorder->directory());
  if (directory == nullptr) return 0;
  std::int32_t stopped = 0;
  trace::FileHeader header{};
  while (const dirent* entry = readdir(directory)) {
    char path[PATH_MAX];
    const int length = std::snprintf(path, sizeof path, "%s/%s", runtime.recorder->directory(), entry->d_name);
    if (length < 0 || length >= static_cast<int>(sizeof path) || !read_header(path, header)) continue;
    if (header.run == own.run && has_stopped(header)) ++stopped;
  }
  closedir(directory);
  return stopped;
}

// A rank that ended would break the collectives in which others are still making their last step.
void wait_for_other_ranks() noexcept {
  const std::int32_t ranks = runtime.recorder->world_size();
  trace::FileHeader own{};
  if (ranks < 2 || !read_header(runtime.recorder->path(), own)) return;
  const std::int64_t patience_ends = trace::clock_ns(CLOCK_MONOTONIC) + kPatienceNs;
  while (stopped_processes(own) < ranks && trace::clock_ns(CLOCK_MONOTONIC) < patience_ends) {
    usleep(kPauseMicroseconds);
  }
}

// Said already. Two threads may both be the first; then it is said twice.
bool is_new(trace::StringId message) noexcept {
  static constinit std::atomic<trace::StringId> said[8]{};
  for (std::atomic<trace::StringId>& entry : said) {
    const trace::StringId before = entry.load(std::memory_order_relaxed);
    if (before == message) return false;
    if (before != trace::StringId::none) continue;
    entry.store(message, std::memory_order_relaxed);
    return true;
  }
  return false;
}

}  // namespace

void note_not_simulated(std::string_view message) noexcept {
  if (runtime.host->options.stop_after <= 0 || !message.starts_with(trace::kNotSimulated)) return;
  message = message.substr(0, message.find('\n'));
  if (is_new(runtime.recorder->intern_string(message))) runtime.recorder->add_notice(message);
}

void stop_after_enough_steps(std::uint32_t step) noexcept {
  if (!is_enough(step)) return;
  runtime.recorder->close(trace::CloseMark::stopped);
  wait_for_other_ranks();
  ::_exit(0);
}

}  // namespace devsan::hooks
