// An input of the fuzzers of traces: a few trace files in one, their runs of zeros packed. A trace is mostly zeros, and
// inputs of a few kilobytes are mutated, kept and compared faster than files of megabytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace devsan::fuzz {

using Bytes = std::vector<std::uint8_t>;

inline constexpr std::size_t kMostFiles = 4;
inline constexpr std::size_t kMostBytes = std::size_t{1} << 20;  // of one file, unpacked

// Every input is some files: what goes beyond the limits is left out.
std::vector<Bytes> unpacked(std::span<const std::uint8_t> input);
Bytes packed(const std::vector<Bytes>& files);

}  // namespace devsan::fuzz
