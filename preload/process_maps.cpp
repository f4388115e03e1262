#include "preload/process_maps.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "trace/fixed_text.h"

namespace devsan {
namespace {

// Room for the fields of a line and a path of PATH_MAX bytes in which every byte is escaped would be 16 KiB; a line
// that does not fit is passed over.
constexpr std::size_t kBufferSize = 16384;

std::uintptr_t read_hexadecimal(const char** text) noexcept {
  std::uintptr_t value = 0;
  for (;; ++*text) {
    const char c = **text;
    unsigned digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<unsigned>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<unsigned>(c - 'a') + 10;
    } else {
      return value;
    }
    value = value * 16 + digit;
  }
}

// "begin-end rwxp offset device inode    path"
bool parse_line(const char* line, Mapping* mapping) noexcept {
  mapping->begin = read_hexadecimal(&line);
  if (*line++ != '-') return false;
  mapping->end = read_hexadecimal(&line);
  if (*line++ != ' ' || std::strlen(line) < 4) return false;
  mapping->protection =
      (line[0] == 'r' ? PROT_READ : 0) | (line[1] == 'w' ? PROT_WRITE : 0) | (line[2] == 'x' ? PROT_EXEC : 0);
  line += 4;
  for (int field = 0; field < 3; ++field) {
    while (*line == ' ') ++line;
    while (*line != ' ' && *line != '\0') ++line;
  }
  while (*line == ' ') ++line;
  mapping->path = line;
  return true;
}

}  // namespace

bool visit_mappings(int pid, bool (*visit)(const Mapping&, void*), void* context) noexcept {
  FixedText<40> name;
  name.append("/proc/");
  if (pid == 0) {
    name.append("self");
  } else {
    name.append_number(static_cast<unsigned>(pid));
  }
  name.append("/maps");
  const int file = open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char buffer[kBufferSize];
  std::size_t filled = 0;
  bool go_on = true;
  while (go_on) {
    const ssize_t got = read(file, buffer + filled, sizeof buffer - filled);
    if (got <= 0) break;
    filled += static_cast<std::size_t>(got);
    char* line = buffer;
    char* const end = buffer + filled;
    while (go_on) {
      char* newline = static_cast<char*>(std::memchr(line, '\n', static_cast<std::size_t>(end - line)));
      if (newline == nullptr) break;
      *newline = '\0';
      Mapping mapping;
      if (parse_line(line, &mapping)) go_on = visit(mapping, context);
      line = newline + 1;
    }
    filled = static_cast<std::size_t>(end - line);
    if (filled == sizeof buffer) filled = 0;
    std::memmove(buffer, line, filled);
  }
  close(file);
  return true;
}

}  // namespace devsan
