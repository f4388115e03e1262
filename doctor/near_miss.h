// Which known word a mistyped one was likely meant to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace devsan::doctor {

// The nearest of `known` when it is so near that `text` is likely a slip of it; else empty.
std::string nearest(std::string_view text, const std::vector<std::string>& known);
// As `nearest`, in capitals or not; else the only word that begins with `text`, or the longest one within it.
std::string likely_meant(std::string_view text, const std::vector<std::string>& known);
// "; did you mean …?", or nothing.
std::string did_you_mean(std::string_view text, const std::vector<std::string>& known);

}  // namespace devsan::doctor
