// How the sections share a trace file of a given size. Only the writer needs this: a reader goes by the file's header.
#pragma once

#include <array>
#include <cstdint>

#include "trace/file_layout.h"

namespace devsan::trace {

inline constexpr std::uint64_t kMinFileSize = std::uint64_t{2} << 20;
inline constexpr std::uint64_t kDefaultFileSize = std::uint64_t{16} << 20;
inline constexpr std::uint64_t kMaxFileSize = std::uint64_t{32} << 20;

struct FileLayout {
  std::uint64_t file_size = 0;
  std::array<Section, kSectionCount> sections{};

  constexpr const Section& operator[](SectionKind kind) const { return sections[static_cast<std::size_t>(kind) - 1]; }
  constexpr std::uint64_t entries(SectionKind kind) const {
    const Section& section = (*this)[kind];
    return section.size / section.entry_size;
  }
};

// `requested` bytes are clamped to what a trace may have; 0 asks for the default.
FileLayout make_layout(std::uint64_t requested) noexcept;

}  // namespace devsan::trace
