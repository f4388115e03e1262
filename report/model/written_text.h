// Code that a person wrote, in no file: on the command line, on standard input, at a prompt, for exec().
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace devsan::report {

inline bool is_written_text(std::string_view path) {
  constexpr std::array<std::string_view, 5> kNames = {"<string>", "<exec>", "<stdin>", "<ipython-input-",
                                                      "<python-input-"};
  return std::ranges::any_of(kNames, [&](std::string_view name) { return path.starts_with(name); });
}

}  // namespace devsan::report
