#include "hooks/inprocess/events/hang_watch.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/common/thread_state.h"
#include "hooks/inprocess/events/collective_log.h"
#include "hooks/inprocess/interpreter/python_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/interpreter/thread_names.h"
#include "hooks/inprocess/provenance/stack.h"
#include "trace/clock.h"
#include "trace/fixed_text.h"

namespace devsan::hooks {

namespace {

constexpr std::int64_t kNanoseconds = 1'000'000'000;
constexpr long kTurn = 500'000'000;  // nanoseconds from look to look
// The same, once a long wait is there and its end is looked for: the ring may come round soon after.
constexpr long kTurnAtEnd = 20'000'000;
constexpr std::size_t kMostStacks = 48;
constexpr std::size_t kThreadStack = 512 << 10;  // of the thread: the stacks that it reads lie there

std::atomic<bool> watching{false};

using WaitingPath = FixedText<4352>;

// Of the run's directory, for all ranks that share it: who waits for too long leaves this file, and the others then say
// where they are, too. Also the rank that is waited for.
WaitingPath path_of_waiting() noexcept {
  WaitingPath path(runtime.recorder->directory());
  path.append("/waiting");
  return path;
}

void leave_word() noexcept {
  const int file = ::open(path_of_waiting().c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return;
  ::futimens(file, nullptr);  // it may be there from an earlier attempt of the job
  ::close(file);
}

bool another_waits(std::int64_t since_ns) noexcept {
  struct stat found {};
  if (::lstat(path_of_waiting().c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return false;
  return found.st_mtim.tv_sec * kNanoseconds + found.st_mtim.tv_nsec >= since_ns;
}

trace::WaitingStackPayload moment_of(std::uint64_t collective) noexcept {
  trace::WaitingStackPayload fixed{};
  fixed.time_ns = trace::wall_clock_ns();
  fixed.collective = collective;
  fixed.step = runtime.step.load(std::memory_order_relaxed);
  return fixed;
}

struct StacksOfThreads {
  std::array<std::byte, kMostStacks * sizeof(Stack)> room;
  std::array<ThreadIdentity, kMostStacks> threads;
  std::size_t count = 0;

  void add(const void* frame, std::uintptr_t thread) noexcept {
    if (count == kMostStacks || frame == nullptr) return;
    new (room.data() + count * sizeof(Stack)) Stack(frame);
    threads[count++] = {.ident = thread};
  }
  const Stack& at(std::size_t index) const noexcept {
    return *std::launder(reinterpret_cast<const Stack*>(room.data() + index * sizeof(Stack)));
  }
};
static_assert(std::is_trivially_destructible_v<Stack>);

// With the GIL nobody else runs Python: what all frames show is as it is. A thread that holds the GIL for good is
// waited for as long, by this thread alone. The interpreter ends threads which ask for the GIL once it is about to end
// itself, by unwinding them: nothing up to the thread's start may be noexcept, or have to be destroyed.
void read_stacks(StacksOfThreads& stacks) {
  const int gil = python.PyGILState_Ensure();
  void* const own = python.PyGILState_GetThisThreadState();
  const std::ptrdiff_t ident = offset_of_ident(own);
  for_other_thread_states(own, [&](const void* thread) {
    stacks.add(current_frame(thread), ident >= 0 ? field<std::uintptr_t>(thread, ident) : 0);
    return true;
  });
  name_threads({stacks.threads.data(), stacks.count});
  python.PyGILState_Release(gil);
}

// First without stacks, so that something is there if they never come.
void record_where_threads_are(std::uint64_t collective) {
  trace::WaitingStackPayload fixed = moment_of(collective);
  runtime.recorder->add_waiting_stack(fixed, {});
  if (!runtime.has_python.load(std::memory_order_acquire) || !interpreter_lives()) return;
  StacksOfThreads stacks;
  read_stacks(stacks);
  for (std::size_t i = 0; i < stacks.count; ++i) {
    const auto frames = stacks.at(i).frames();
    keep_source_lines(frames);
    fixed.tid = stacks.threads[i].tid;
    fixed.thread_name = stacks.threads[i].name;
    runtime.recorder->add_waiting_stack(fixed, frames);
  }
}

bool is_this_process(std::uint64_t epoch) noexcept {
  return runtime.epoch_page->epoch.load(std::memory_order_relaxed) == epoch;
}

void pause(long nanoseconds) noexcept {
  const timespec turn{0, nanoseconds};
  ::nanosleep(&turn, nullptr);
}

// As far as anybody can tell.
bool is_over(const trace::CollectiveEntry& entry) noexcept {
  if (entry.state >= trace::CollectiveState::finished) return entry.finished_ns != 0;
  return trace::ends_unseen(entry.flags);
}

// Records it as soon as it has been entered and is over.
void record_end(std::uint64_t number, std::uint64_t epoch) noexcept {
  while (is_this_process(epoch)) {
    const std::optional<trace::CollectiveEntry> entry = collective_log.find(number);
    if (entry && is_over(*entry)) return runtime.recorder->add_long_wait(*entry);
    if (!entry && collective_log.entered() > number + 1) return;
    pause(kTurnAtEnd);
  }
}

extern "C" void* devsan_watch_for_hangs(void*) {
  ::prctl(PR_SET_NAME, "devsan-hang");
  thread_state().busy = true;
  const std::uint64_t epoch = runtime.epoch_page->epoch.load(std::memory_order_relaxed);
  const std::int64_t since = trace::wall_clock_ns();
  const std::int64_t patience = runtime.host->options.hang_after * kNanoseconds;
  for (;;) {
    pause(kTurn);
    if (!is_this_process(epoch)) return nullptr;
    const std::uint64_t overdue = collective_log.oldest_open(trace::wall_clock_ns() - patience);
    if (overdue == 0 && !another_waits(since)) continue;
    if (overdue != 0) leave_word();
    const std::uint64_t entered = collective_log.entered();
    const std::uint64_t in = overdue != 0 ? overdue : collective_log.oldest_open(trace::wall_clock_ns());
    record_where_threads_are(in);
    // Where another process waits, it is for the next one; an older one may be of those whose end nothing tells.
    if (overdue == 0) record_end(entered, epoch);
    if (in != 0) record_end(in - 1, epoch);
    return nullptr;
  }
}

}  // namespace

void watch_for_hangs() noexcept {
  if (watching.load(std::memory_order_relaxed) || watching.exchange(true, std::memory_order_relaxed)) return;
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return;
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  ::pthread_attr_setstacksize(&attributes, kThreadStack);
  // Signals are for the program's own threads.
  sigset_t all;
  sigset_t former;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &former);
  pthread_t thread;
  const int error = ::pthread_create(&thread, &attributes, devsan_watch_for_hangs, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &former, nullptr);
  ::pthread_attr_destroy(&attributes);
  if (error != 0) runtime.recorder->add_notice("no thread could be started to watch for collectives that hang");
}

void reset_hang_watch_after_fork() noexcept {
  watching.store(false, std::memory_order_relaxed);
}

}  // namespace devsan::hooks
