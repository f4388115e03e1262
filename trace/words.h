// A program's text: its characters, and the calls in it.
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <string_view>

namespace devsan::trace {

inline bool contains(std::string_view text, std::string_view part) noexcept {
  return text.find(part) != text.npos;
}

// Of a Python identifier; bytes beyond ASCII are taken for letters.
inline bool is_word(char c) noexcept {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || (c & 0x80) != 0;
}

// The methods of a tensor or a module that move it to a device.
inline constexpr std::array<std::string_view, 2> kMoves = {"to", "cuda"};

// Whether a text calls a method of one of these names: with "to", whether ".to(" stands in it.
inline bool calls_method(std::string_view text, std::span<const std::string_view> names) noexcept {
  const auto is_called = [text](std::string_view name) {
    for (std::size_t at = text.find(name, 1); at != text.npos; at = text.find(name, at + 1)) {
      const std::size_t behind = at + name.size();
      if (text[at - 1] == '.' && behind < text.size() && text[behind] == '(') return true;
    }
    return false;
  };
  return std::ranges::any_of(names, is_called);
}

// Where the name that ends before `end` begins, with the attributes before it: "self.rows" of `f(self.rows`.
inline std::size_t begin_of_path(std::string_view text, std::size_t end) noexcept {
  while (end > 0 && (is_word(text[end - 1]) || text[end - 1] == '.')) --end;
  return end;
}

// Where a name stands, also as an attribute of whatever object, and as no part of a longer word, from `begin` on; npos
// where it does not.
inline std::size_t name_in(std::string_view text, std::string_view name, std::size_t begin = 0) noexcept {
  for (std::size_t at = text.find(name, begin); at != text.npos && !name.empty(); at = text.find(name, at + 1)) {
    const std::size_t behind = at + name.size();
    const bool begins = at == 0 || !is_word(text[at - 1]);
    if (begins && (behind == text.size() || !is_word(text[behind]))) return at;
  }
  return text.npos;
}

// `x.cpu()`, `x.numpy()`, `x.tolist()`, `x.item()`
inline bool brings_to_host(std::string_view text) noexcept {
  constexpr std::array<std::string_view, 4> kCalls = {"cpu", "numpy", "tolist", "item"};
  return calls_method(text, kCalls);
}

}  // namespace devsan::trace
