// The inside of TraceFile::open.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <variant>

#include "trace/reader.h"
#include "trace/record_reading.h"

namespace devsan::trace {

// Makes times that a damaged header may hold usable.
void bound_header_times(FileHeader& header);

class TraceFile::Loader {
 public:
  std::variant<TraceFile, Damage> load(const std::filesystem::path& path);

 private:
  // What was found at a place of the event log.
  enum class Found { broken, unfinished, unknown, record };

  void complain(std::uint64_t offset, std::uint64_t bytes, std::string reason);
  std::array<Section, kSectionCount> usable_sections(std::uint64_t size);
  void check_counters(std::uint64_t file_size);

  void read_events();
  Found examine(std::uint64_t at, RecordHeader& header);
  bool sum_is_right(const RecordHeader& header, std::span<const std::byte> payload);
  void tell_of_gap(std::uint64_t begin, std::uint64_t end);
  bool take_record(RecordKind kind, std::span<const std::byte> payload);
  bool take_meeting(std::span<const std::byte> payload);
  bool take_facts(std::span<const std::byte> payload);
  bool take_source_file(std::span<const std::byte> payload);
  bool take_placements(std::span<const std::byte> payload);
  bool take_traffic(std::span<const std::byte> payload);
  bool take_device_call(std::span<const std::byte> payload);
  bool take_device_memory(std::span<const std::byte> payload);
  bool take_call_ring(std::span<const std::byte> payload);
  bool take_memory_series(std::span<const std::byte> payload);
  bool take_step_series(std::span<const std::byte> payload);
  bool take_data_waits(std::span<const std::byte> payload);
  bool take_peak_memory(std::span<const std::byte> payload);
  bool take_site_memory(std::span<const std::byte> payload);
  bool take_live_memory(std::span<const std::byte> payload);
  bool take_collective_ring(std::span<const std::byte> payload);
  bool take_long_wait(std::span<const std::byte> payload);
  bool take_collective_group(std::span<const std::byte> payload);
  template <class Record>
  static bool take_with_frames(std::span<const std::byte> payload, std::vector<Record>& records);

  void bound_all_times();

  void read_threads();
  void read_tail(const ThreadRing& ring, std::uint64_t offset);

  TraceFile file_;
  std::span<const std::byte> events_;
  std::uint64_t place_ = 0;          // of the event log in the file
  std::uint64_t checked_bytes_ = 0;  // summed up so far; bounds the work that a hostile file can cause
  std::size_t more_damage_ = 0;
  std::uint64_t more_damaged_bytes_ = 0;
};

// What is fixed says how many frames follow it.
template <class Record>
bool TraceFile::Loader::take_with_frames(std::span<const std::byte> payload, std::vector<Record>& records) {
  Record record;
  if (payload.size() < sizeof(record.fixed)) return false;
  record.fixed = read<decltype(record.fixed)>(payload);
  auto rest = payload.subspan(sizeof(record.fixed));
  if (rest.size() != record.fixed.frames * sizeof(FrameRecord)) return false;
  record.frames = take<FrameRecord>(rest, record.fixed.frames);
  records.push_back(std::move(record));
  return true;
}

}  // namespace devsan::trace
