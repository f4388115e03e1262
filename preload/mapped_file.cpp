#include "preload/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace devsan {

MappedFile::MappedFile(const char* path) noexcept {
  // CLOEXEC, because another thread may start a program meanwhile. NONBLOCK, because a fifo would wait for a writer.
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return;
  struct stat status;
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
    const auto size = static_cast<std::size_t>(status.st_size);
    void* const mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (mapped != MAP_FAILED) {
      data_ = static_cast<const char*>(mapped);
      size_ = size;
    }
  }
  close(file);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<char*>(data_), size_);
}

std::string_view take_line(std::string_view* text) noexcept {
  const std::size_t end = std::min(text->find('\n'), text->size());
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return line;
}

std::string_view take_word(std::string_view* line) noexcept {
  constexpr std::string_view kSpace = " \t\r";
  line->remove_prefix(std::min(line->find_first_not_of(kSpace), line->size()));
  const std::size_t end = std::min(line->find_first_of(kSpace), line->size());
  const std::string_view word = line->substr(0, end);
  line->remove_prefix(end);
  return word;
}

}  // namespace devsan
