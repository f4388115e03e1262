// A file mapped for reading: no memory from the heap, and nothing is copied.
#pragma once

#include <cstddef>
#include <string_view>

namespace devsan {

class MappedFile {
 public:
  explicit MappedFile(const char* path) noexcept;
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Empty for an empty file and for one that is none, or cannot be read.
  std::string_view text() const noexcept { return {data_, size_}; }

 private:
  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

// Takes the next line, without its end, off `text`.
std::string_view take_line(std::string_view* text) noexcept;

// Takes the next word off `line`; empty at its end.
std::string_view take_word(std::string_view* line) noexcept;

}  // namespace devsan
