#include "packing.h"

#include <algorithm>

namespace devsan::fuzz {
namespace {

// A zero byte begins a token: 0 ends a file, 1 to 127 is so many zeros, more is the upper half of a number.
constexpr std::uint8_t kEndOfFile = 0;
constexpr std::size_t kShort = 127;
constexpr std::size_t kLong = 0x7FFF;

void pack_zeros(std::size_t count, Bytes& out) {
  while (count > 0) {
    const std::size_t some = std::min(count, kLong);
    out.push_back(0);
    if (some > kShort) {
      out.push_back(static_cast<std::uint8_t>(0x80 | (some >> 8)));
      out.push_back(static_cast<std::uint8_t>(some));
    } else {
      out.push_back(static_cast<std::uint8_t>(some));
    }
    count -= some;
  }
}

// How many zeros the token says, whose first byte has been read.
std::size_t zeros_of(std::uint8_t first, std::span<const std::uint8_t> input, std::size_t& at) {
  if (first <= kShort) return first;
  const std::size_t low = at < input.size() ? input[at++] : 0;
  return (std::size_t{first} & kShort) << 8 | low;
}

}  // namespace

std::vector<Bytes> unpacked(std::span<const std::uint8_t> input) {
  std::vector<Bytes> files(1);
  std::size_t at = 0;
  while (at < input.size()) {
    const std::uint8_t byte = input[at++];
    Bytes& file = files.back();
    if (byte != 0) {
      file.push_back(byte);
    } else if (const std::uint8_t first = at < input.size() ? input[at++] : kEndOfFile; first != kEndOfFile) {
      file.resize(file.size() + zeros_of(first, input, at));
    } else if (files.size() == kMostFiles) {
      break;
    } else {
      files.emplace_back();
    }
    if (files.back().size() > kMostBytes) files.back().resize(kMostBytes);
  }
  return files;
}

Bytes packed(const std::vector<Bytes>& files) {
  Bytes out;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (i > 0) out.insert(out.end(), {0, kEndOfFile});
    for (auto at = files[i].begin(); at != files[i].end();) {
      const auto data = std::find_if(at, files[i].end(), [](std::uint8_t byte) { return byte != 0; });
      pack_zeros(static_cast<std::size_t>(data - at), out);
      at = std::find(data, files[i].end(), 0);
      out.insert(out.end(), data, at);
    }
  }
  return out;
}

}  // namespace devsan::fuzz
