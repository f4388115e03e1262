// Whose code a file is, by its path.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace devsan::trace {

// Code that a person wrote, in no file: on the command line, on standard input, at a prompt, for exec().
inline bool is_written_text(std::string_view path) noexcept {
  constexpr std::array<std::string_view, 5> kNames = {"<string>", "<exec>", "<stdin>", "<ipython-input-",
                                                      "<python-input-"};
  return std::ranges::any_of(kNames, [&](std::string_view name) { return path.starts_with(name); });
}

// Installed code: under site-packages or dist-packages, in the standard library, or frozen into the interpreter.
inline bool is_library_path(std::string_view path) noexcept {
  constexpr std::string_view kStandard = "/lib/python";
  if (path.starts_with('<')) return !is_written_text(path);
  if (path.find("/site-packages/") != path.npos || path.find("/dist-packages/") != path.npos) return true;
  const auto lib = path.rfind(kStandard);
  if (lib == path.npos) return false;
  const auto version = path.substr(lib + kStandard.size());
  return !version.empty() && version.front() >= '0' && version.front() <= '9';
}

}  // namespace devsan::trace
