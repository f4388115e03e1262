// The life of a trace file: opened, opened again in a forked child, closed.
#include "trace/recorder.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "trace/clock.h"
#include "trace/file_access.h"
#include "trace/process_info.h"
#include "trace/quiet_section.h"

namespace devsan::trace {
namespace {

static_assert(std::endian::native == std::endian::little, "the file is little-endian and written as it lies in memory");

constexpr std::size_t kStringSlots = std::size_t{1} << 16;
constexpr std::size_t kOperatorSlots = std::size_t{1} << 14;

// Maps what was the parent's file to memory of our own: pointers from before the fork, into rings or meetings, must
// neither fault nor reach the parent.
void let_go(std::byte* inherited, std::size_t size) noexcept {
  mmap(inherited, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}

template <class Count>
Count used_at_most(Count& used, std::uint64_t limit) noexcept {
  return static_cast<Count>(std::min<std::uint64_t>(atom(used).load(std::memory_order_acquire), limit));
}

}  // namespace

OpenResult Recorder::open(const RecorderSettings& settings) noexcept {
  const QuietSection quiet;
  OpenResult result = prepare(settings);
  if (result == OpenResult::opened) result = start_file(nullptr);
  if (page_ != nullptr) page_->reopening.store(ReopenState::settled, std::memory_order_release);
  return result;
}

OpenResult Recorder::fail(OpenResult result, int error) noexcept {
  last_errno_.store(error, std::memory_order_relaxed);
  gave_up_.store(true, std::memory_order_relaxed);
  return result;
}

OpenResult Recorder::prepare(const RecorderSettings& settings) noexcept {
  const char* const directory = settings.directory != nullptr ? settings.directory : "";
  if (!make_absolute(directory, directory_) || !make_directories(directory_)) {
    return fail(OpenResult::cannot_create_directory, errno);
  }
  layout_ = make_layout(settings.file_size);
  run_ = settings.run;
  if (!make_indexes()) return fail(OpenResult::cannot_map, errno);
  const ForkPageResult made = make_fork_page();
  if (made.page == nullptr) return fail(OpenResult::cannot_map, errno);
  page_ = made.page;
  check_pid_ = made.wiped_by != WipedBy::kernel;
  epoch_page_ = &page_->epoch;
  return OpenResult::opened;
}

// One slot an entry is enough: an index that is nearly full only means that an entry is stored twice now and then.
bool Recorder::make_indexes() noexcept {
  const std::size_t site_slots = std::bit_ceil(layout_.entries(SectionKind::sites));
  const std::size_t lineage_slots = std::bit_ceil(layout_.entries(SectionKind::lineage));
  const std::size_t words =
      kStringSlots + kOperatorSlots + site_slots + lineage_slots + kSeenSourceLines + kSeenSourceFiles;
  void* const memory = mmap(nullptr, words * sizeof(HashIndex::Slot), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  auto* slots = static_cast<HashIndex::Slot*>(memory);
  strings_.use(slots, kStringSlots);
  operators_.use(slots += kStringSlots, kOperatorSlots);
  sites_.use(slots += kOperatorSlots, site_slots);
  lineage_.use(slots += site_slots, lineage_slots);
  seen_source_lines_ = slots += lineage_slots;
  seen_source_files_ = slots += kSeenSourceLines;
  return true;
}

OpenResult Recorder::start_file(std::byte* inherited) noexcept {
  ProcessInfo info = this_process();
  complete_rank(info.place);
  PathBuffer path;
  const MappedFile file = make_mapped_file(directory_, info.place.rank, info.pid, layout_.file_size, path);
  if (file.result != OpenResult::opened) return fail(file.result, file.error);
  write_header(file.base, info);
  if (inherited != nullptr) copy_tables(file.base, inherited);
  // Last of all: without it the file is no trace, and a process killed before this point had nothing to say.
  auto& magic = *reinterpret_cast<std::uint64_t*>(file.base + offsetof(FileHeader, magic));
  atom(magic).store(std::bit_cast<std::uint64_t>(kMagic), std::memory_order_release);

  std::memcpy(path_, path, std::strlen(path) + 1);
  pid_.store(info.pid, std::memory_order_relaxed);
  base_.store(file.base, std::memory_order_release);
  if (inherited != nullptr) let_go(inherited, layout_.file_size);
  page_->epoch.epoch.store(++generation_, std::memory_order_release);
  return OpenResult::opened;
}

// A forked child has the rank that its parent has learned. Of a group of as many as there are tasks it is learned, too:
// it may have them in another order.
void Recorder::complete_rank(JobPlace& place) noexcept {
  rank_was_given_ = place.rank >= 0 && !place.rank_is_tasks;
  const std::int32_t learned = rank_.load(std::memory_order_relaxed);
  if (rank_was_given_) {
    rank_.store(place.rank, std::memory_order_relaxed);
  } else if (learned >= 0) {
    if (place.rank >= 0 && place.rank != learned) place.local_rank = -1;
    place.rank = learned;
    place.world_size = std::max(place.world_size, world_size_.load(std::memory_order_relaxed));
  } else if (place.rank >= 0) {
    world_size_.store(place.world_size - 1, std::memory_order_relaxed);
  }
}

void Recorder::write_header(std::byte* base, const ProcessInfo& info) const noexcept {
  FileHeader& head = *reinterpret_cast<FileHeader*>(base);
  head.major_version = kMajorVersion;
  head.minor_version = kMinorVersion;
  head.header_size = sizeof(FileHeader);
  head.file_size = layout_.file_size;
  head.pid = info.pid;
  head.parent_pid = info.parent_pid;
  head.rank = info.place.rank;
  head.local_rank = info.place.local_rank;
  head.world_size = info.place.world_size;
  head.node_plus_one = static_cast<std::uint32_t>(info.place.node + 1);
  head.attempt_plus_one = static_cast<std::uint32_t>(info.place.attempt + 1);
  head.start_time_ns = info.start_time_ns;
  head.start_ticks = info.start_ticks;
  head.host = info.host;
  head.run = run_.name;
  head.rendezvous = run_.rendezvous;
  head.sections = layout_.sections;
  head.strings_used = kFirstStringOffset;
  head.operators_used = kFirstEntry;
  head.sites_used = kFirstEntry;
  head.lineage_used = kFirstEntry;
}

// The parent goes on writing meanwhile. What it had published at the fork is whole here; an entry that it is about to
// publish is copied or left empty, and nobody in this process knows its id.
void Recorder::copy_tables(std::byte* to, std::byte* from) const noexcept {
  FileHeader& theirs = *reinterpret_cast<FileHeader*>(from);
  FileHeader& ours = *reinterpret_cast<FileHeader*>(to);
  for (std::size_t slot = 0; slot < kMaxDevices; ++slot) {
    ours.device_names[slot] = atom(theirs.device_names[slot]).load(std::memory_order_acquire);
  }
  ours.lineage_used = used_at_most(theirs.lineage_used, layout_.entries(SectionKind::lineage));
  auto* const nodes_to = reinterpret_cast<std::uint64_t*>(section(to, SectionKind::lineage));
  auto* const nodes_from = reinterpret_cast<std::uint64_t*>(section(from, SectionKind::lineage));
  for (std::size_t half = 0; half < std::size_t{ours.lineage_used} * 2; half += 2) {
    const std::uint64_t with_how = atom(nodes_from[half + 1]).load(std::memory_order_acquire);
    if (with_how == 0) continue;
    nodes_to[half] = nodes_from[half];
    nodes_to[half + 1] = with_how;
  }
  ours.sites_used = used_at_most(theirs.sites_used, layout_.entries(SectionKind::sites));
  auto* const sites_to = reinterpret_cast<Site*>(section(to, SectionKind::sites));
  auto* const sites_from = reinterpret_cast<Site*>(section(from, SectionKind::sites));
  for (std::size_t id = 0; id < ours.sites_used; ++id) {
    const StringId file = atom(sites_from[id].innermost.file).load(std::memory_order_acquire);
    if (file != StringId::none) sites_to[id] = sites_from[id];
  }
  ours.operators_used = used_at_most(theirs.operators_used, layout_.entries(SectionKind::operators));
  auto* const names_to = reinterpret_cast<StringId*>(section(to, SectionKind::operators));
  auto* const names_from = reinterpret_cast<StringId*>(section(from, SectionKind::operators));
  for (std::size_t id = 0; id < ours.operators_used; ++id) {
    names_to[id] = atom(names_from[id]).load(std::memory_order_acquire);
  }
  // Last, so that every string that was named above is among those copied.
  ours.strings_used = used_at_most(theirs.strings_used, layout_[SectionKind::strings].size);
  std::memcpy(section(to, SectionKind::strings), section(from, SectionKind::strings), ours.strings_used);
}

bool Recorder::reopen_in_child() noexcept {
  if (active()) return true;
  if (gave_up() || page_ == nullptr) return false;
  const QuietSection quiet;
  ReopenState state = ReopenState::untouched;
  if (page_->reopening.compare_exchange_strong(state, ReopenState::working, std::memory_order_acq_rel)) {
    // Meetings of the parent are not copied, and neither is what was said of their lines.
    for (std::size_t slot = 0; slot < kSeenSourceLines; ++slot) {
      seen_source_lines_[slot].store(0, std::memory_order_relaxed);
    }
    for (std::size_t slot = 0; slot < kSeenSourceFiles; ++slot) {
      seen_source_files_[slot].store(0, std::memory_order_relaxed);
    }
    source_bytes_.store(0, std::memory_order_relaxed);
    std::byte* const inherited = base_.load(std::memory_order_acquire);
    if (inherited == nullptr) {
      fail(OpenResult::cannot_map, 0);
    } else {
      start_file(inherited);
    }
    page_->reopening.store(ReopenState::settled, std::memory_order_release);
  } else {
    while (page_->reopening.load(std::memory_order_acquire) == ReopenState::working) sched_yield();
  }
  return active();
}

void Recorder::note_exit_status(int status) noexcept {
  std::byte* const base = writable_by_owner();
  if (base == nullptr) return;
  ToldEnd& end = reinterpret_cast<FileHeader*>(base)->told_end;
  atom(end.status).store((status & 0xFF) << 8, std::memory_order_relaxed);
  atom(end.told_by).store(kToldByItself, std::memory_order_release);
}

void Recorder::close(CloseMark mark) noexcept {
  std::byte* const base = writable_by_owner();
  if (base == nullptr) return;
  FileHeader& head = *reinterpret_cast<FileHeader*>(base);
  if (mark != CloseMark::open) atom(head.end_time_ns).store(wall_clock_ns(), std::memory_order_relaxed);
  const auto word = atom(head.close_mark);
  CloseMark expected = mark == CloseMark::open ? CloseMark::executed : CloseMark::open;
  word.compare_exchange_strong(expected, mark);
  const bool ends = mark != CloseMark::open && mark != CloseMark::executed;
  if (!ends) return;
  gave_up_.store(true, std::memory_order_relaxed);
  page_->epoch.epoch.store(0, std::memory_order_release);
}

std::byte* Recorder::writable() const noexcept {
  if (epoch_page_->epoch.load(std::memory_order_acquire) == 0) return nullptr;
  return check_pid_ ? writable_by_owner() : base_.load(std::memory_order_acquire);
}

std::byte* Recorder::writable_by_owner() const noexcept {
  if (epoch_page_->epoch.load(std::memory_order_acquire) == 0) return nullptr;
  if (static_cast<std::uint32_t>(getpid()) != pid_.load(std::memory_order_relaxed)) return nullptr;
  return base_.load(std::memory_order_acquire);
}

}  // namespace devsan::trace
