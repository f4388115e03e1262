#include "report/findings/trace_reader.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "report/findings/build_findings.h"
#include "report/findings/build_growth.h"
#include "report/findings/build_run.h"
#include "report/findings/build_traffic.h"

namespace devsan::report {
namespace {

// Fewer are read before threads would have begun.
constexpr std::size_t kFewFiles = 16;
constexpr unsigned kMostThreads = 4;
// How far ahead of the one that is asked for, for each thread: a trace may take 32 MiB.
constexpr std::size_t kAhead = 2;

}  // namespace

// Threads that take the next file each, as long as it is not too far ahead.
class TraceReader::Crew {
 public:
  explicit Crew(std::span<const std::filesystem::path> files) : files_(files) {
    const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1u, kMostThreads);
    slots_.resize(threads * kAhead);
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }

  ~Crew() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    room_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  ReadResult result(std::size_t index) {
    std::unique_lock lock(mutex_);
    std::optional<ReadResult>& slot = slots_[index % slots_.size()];
    done_.wait(lock, [&] { return slot.has_value(); });
    ReadResult result = std::move(*slot);
    slot.reset();
    ++given_;
    lock.unlock();
    room_.notify_all();
    return result;
  }

 private:
  void work() {
    while (const std::optional<std::size_t> index = take_index()) {
      ReadResult result = read_trace(files_[*index]);
      const std::lock_guard lock(mutex_);
      slots_[*index % slots_.size()].emplace(std::move(result));
      done_.notify_all();
    }
  }

  std::optional<std::size_t> take_index() {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return stopped_ || next_ == files_.size() || next_ < given_ + slots_.size(); });
    if (stopped_ || next_ == files_.size()) return std::nullopt;
    return next_++;
  }

  std::span<const std::filesystem::path> files_;
  std::mutex mutex_;
  std::condition_variable room_;
  std::condition_variable done_;
  std::vector<std::optional<ReadResult>> slots_;  // by index, modulo their number
  std::size_t next_ = 0;                          // that a thread takes
  std::size_t given_ = 0;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

ReadResult read_trace(const std::filesystem::path& path) {
  auto opened = trace::TraceFile::open(path);
  if (auto* damage = std::get_if<trace::Damage>(&opened)) return std::move(*damage);
  ReadTrace read{std::move(std::get<trace::TraceFile>(opened)), {}, {}, {}, {}};
  read.process = process_of(read.trace);
  read.meetings = build_findings(read.trace);
  read.traffic = build_traffic(read.trace);
  read.growth = build_growth(read.trace, read.process);
  return read;
}

TraceReader::TraceReader(std::span<const std::filesystem::path> files) : files_(files) {
  if (files.size() > kFewFiles) crew_ = std::make_unique<Crew>(files);
}

TraceReader::~TraceReader() = default;

std::optional<ReadResult> TraceReader::next() {
  if (given_ == files_.size()) return std::nullopt;
  const std::size_t index = given_++;
  return crew_ == nullptr ? read_trace(files_[index]) : crew_->result(index);
}

}  // namespace devsan::report
