// Text of bounded length on the stack, put together without stdio and without the heap, so that it can be used in a
// signal handler and inside a program's own allocator. What does not fit is cut off.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace devsan {

// strcmp(a, b) == 0, for where strcmp may be that of a sanitizer which is not ready yet and needs our dlsym to get
// there.
inline bool same_text(const char* a, const char* b) noexcept {
  while (*a == *b && *a != '\0') {
    ++a;
    ++b;
  }
  return *a == *b;
}

template <std::size_t kSize>
class FixedText {
 public:
  constexpr FixedText() noexcept {
    text_[0] = '\0';
    if (std::is_constant_evaluated()) {
      for (char& c : text_) c = '\0';
    }
  }
  explicit FixedText(std::string_view text) noexcept : FixedText() { append(text); }

  FixedText& append(std::string_view text) noexcept {
    for (const char c : text) {
      if (length_ >= kSize - 1) {
        truncated_ = true;
        break;
      }
      text_[length_++] = c;
    }
    text_[length_] = '\0';
    return *this;
  }

  // In decimal digits, with leading zeros up to `width`.
  FixedText& append_number(std::uint64_t number, int width = 0) noexcept {
    char digits[24];
    std::size_t at = sizeof digits;
    do {
      digits[--at] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    while (sizeof digits - at < static_cast<std::size_t>(width)) digits[--at] = '0';
    return append({digits + at, sizeof digits - at});
  }

  void clear() noexcept {
    length_ = 0;
    text_[0] = '\0';
    truncated_ = false;
  }

  const char* c_str() const noexcept { return text_; }
  std::string_view view() const noexcept { return {text_, length_}; }
  bool empty() const noexcept { return length_ == 0; }
  // Whether something did not fit: a path that was cut off is another path.
  bool truncated() const noexcept { return truncated_; }

 private:
  std::size_t length_ = 0;
  bool truncated_ = false;
  char text_[kSize];
};

}  // namespace devsan
