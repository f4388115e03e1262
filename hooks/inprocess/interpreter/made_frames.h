// Frames that no interpreter runs, in the layout of its own: what reads running frames reads them, too.
#pragma once

#include <cstddef>
#include <cstring>

namespace devsan::hooks {

// Bytes that a frame of this code needs, up to the last of its variables.
std::size_t size_of_frame(const void* code) noexcept;

// `offset` as FrameLayout has them.
template <class T>
void write_in_frame(std::byte* frame, std::ptrdiff_t offset, T value) noexcept {
  std::memcpy(frame + offset, &value, sizeof value);
}

// Lets a frame stand at an instruction of its code, given in bytes.
void stand_at(std::byte* frame, const void* code, int instruction) noexcept;

}  // namespace devsan::hooks
