#include "doctor/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>

namespace devsan::doctor {
namespace {

std::string one_decimal(double value, const char* unit) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.1f %s", value, unit);
  return text.data();
}

}  // namespace

std::string gibibytes(double bytes) {
  constexpr double kMebi = 1 << 20;
  constexpr double kGibi = 1 << 30;
  return bytes < kGibi ? one_decimal(bytes / kMebi, "MiB") : one_decimal(bytes / kGibi, "GiB");
}

std::string counted(std::uint64_t count, std::string_view noun) {
  const char* plural = noun.ends_with('s') ? "es" : "s";
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : plural);
}

std::string billions(std::uint64_t count) {
  const auto value = static_cast<double>(count);
  return count >= 1'000'000'000 ? one_decimal(value / 1e9, "billion") : one_decimal(value / 1e6, "million");
}

std::string cuda_version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string listed(const std::vector<std::string>& words, std::string_view last) {
  const std::string before_last = " " + std::string(last) + " ";
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += i == 0 ? "" : (i + 1 == words.size() ? before_last : ", ");
    text += words[i];
  }
  return text;
}

}  // namespace devsan::doctor
