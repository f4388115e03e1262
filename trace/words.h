// The characters of a program's text.
#pragma once

#include <cctype>

namespace devsan::trace {

// Of a Python identifier; bytes beyond ASCII are taken for letters.
inline bool is_word(char c) noexcept {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || (c & 0x80) != 0;
}

}  // namespace devsan::trace
