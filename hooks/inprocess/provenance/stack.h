// The stack at a meeting: Python frames, or native ones where there is no Python, and the phase of training they tell
// of.
#pragma once

#include <array>
#include <span>

#include "hooks/inprocess/common/thread_state.h"
#include "hooks/inprocess/provenance/sites.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

class Stack {
 public:
  enum class Native { read, leave };  // to read native frames allocates

  // Reads the calling thread's stack. `fallback`: the site to show for a thread without Python frames, such as those of
  // the autograd engine; none for native frames.
  Stack(const ThreadState& state, trace::SiteId fallback, Native native = Native::read) noexcept;

  // Reads Python frames from `innermost` outwards.
  explicit Stack(const void* innermost) noexcept { read_python(innermost); }

  std::span<const trace::FrameRecord> frames() const noexcept { return {frames_.data(), frame_count_}; }
  std::span<const trace::NativeFrame> native_frames() const noexcept { return {native_.data(), native_count_}; }

  // From the frames alone; `backward` is for the caller to know.
  trace::Phase phase() const noexcept { return phase_; }

 private:
  static constexpr std::size_t kMaxFrames = 64;
  static constexpr std::size_t kMaxNativeFrames = 32;

  void read_python(const void* frame) noexcept;
  void read_native() noexcept;
  void note_phase(const trace::Position& position) noexcept;

  std::array<trace::FrameRecord, kMaxFrames> frames_{};
  std::array<trace::NativeFrame, kMaxNativeFrames> native_{};
  std::size_t frame_count_ = 0;
  std::size_t native_count_ = 0;
  trace::Phase phase_ = trace::Phase::other;
};

// The frames of a site, for a place that is known only by its site.
std::size_t frames_of_site(trace::SiteId site, std::span<trace::FrameRecord, 2> frames) noexcept;

// Keeps the source lines that frames, the history that ends in `lineage`, and a site point to.
void keep_source_lines(std::span<const trace::FrameRecord> frames) noexcept;
void keep_source_lines(trace::LineageId lineage) noexcept;
void keep_source_lines(trace::SiteId site) noexcept;

}  // namespace devsan::hooks
