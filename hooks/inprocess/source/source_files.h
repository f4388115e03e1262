// Lines of source files, read while the program that they belong to runs: files change, and reports are read elsewhere.
#pragma once

#include <cstddef>
#include <string_view>

#include "trace/file_layout.h"

namespace devsan::hooks {

// Holds the last file in memory while it lives, since frames of one file follow each other. What it returns lives as
// long as that.
class SourceFiles {
 public:
  SourceFiles() = default;
  ~SourceFiles();
  SourceFiles(const SourceFiles&) = delete;
  SourceFiles& operator=(const SourceFiles&) = delete;

  // Writes the text of the line, and of those that its statement goes on in, to the trace, at most kMaxLineBytes of
  // each; nothing where the file is no regular file, too large, or has no such line.
  void keep(trace::StringId file, int line) noexcept;

  // A line's text, without keeping it.
  std::string_view line(trace::StringId file, int number) noexcept { return text(file, number, false); }

  // The whole file; empty where it cannot be read.
  std::string_view whole(trace::StringId file) noexcept {
    return map(file) ? std::string_view(text_, size_) : std::string_view();
  }

  // The part of one line between two byte columns; empty where it is not known.
  std::string_view part(const trace::Position& position) noexcept;

 private:
  static constexpr std::size_t kMaxFileBytes = std::size_t{16} << 20;
  static constexpr std::size_t kMaxLineBytes = 1024;

  std::string_view text(trace::StringId file, int line, bool keep) noexcept;
  bool map(trace::StringId file) noexcept;
  void unmap() noexcept;

  trace::StringId mapped_ = trace::StringId::none;
  char* text_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace devsan::hooks
