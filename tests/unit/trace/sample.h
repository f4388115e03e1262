// What the tests of the trace record, and how they look at it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "trace/reader.h"
#include "trace/recorder.h"

namespace devsan::trace::testing {

class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// A recorder that has opened a small file in `directory`; the test fails when it has not.
std::unique_ptr<Recorder> open_recorder(const std::filesystem::path& directory, std::size_t file_size = kMinFileSize);

// The file that is there, as read; the test fails when it cannot be.
TraceFile read_trace(const std::filesystem::path& file);
TraceFile read_trace(const Recorder& recorder);

std::vector<std::filesystem::path> traces_in(const std::filesystem::path& directory);
std::vector<std::byte> bytes_of(const std::filesystem::path& file);
void write_bytes(const std::filesystem::path& file, const std::vector<std::byte>& bytes);

// A meeting that can be told from others by `number`, which is its `time_ns` and in its message.
MeetingPayload* add_numbered_meeting(Recorder& recorder, std::int64_t number);

// As the hooks do it: one operator more in the ring of a thread.
void note_operator(ThreadRing& ring, OperatorId op, DeviceSlot device, SiteId site, std::uint32_t step);

// Records one of everything: two meetings (one with Python frames, one with native ones), a lineage of three nodes, a
// ring that has gone round once. The same bytes each time, but for the process and the clock.
void record_sample(Recorder& recorder);

// Besides: the times of three steps and of a fourth that has not ended, what was live at a peak, and a collective that
// held up the process.
void record_sample_of_training(Recorder& recorder);

// All that a reader gives, as text.
std::string describe(const TraceFile& trace);

// The same trace in a file in which every section is just as long as what is used of it, and in which the process and
// the clock are always the same.
std::vector<std::byte> compacted(std::vector<std::byte> trace);

}  // namespace devsan::trace::testing
