#include "report/text/words.h"

#include <array>
#include <cstdio>

namespace devsan::report {

std::string ranges_of(const std::vector<int>& ascending) {
  std::string text;
  for (std::size_t first = 0, last = 0; first < ascending.size(); first = last + 1) {
    last = first;
    while (last + 1 < ascending.size() && ascending[last + 1] == ascending[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += std::to_string(ascending[first]);
    if (last > first) text += (last == first + 1 ? ", " : "-") + std::to_string(ascending[last]);
  }
  return text;
}

std::string ranks_text(const std::vector<int>& ascending) {
  return (ascending.size() == 1 ? "rank " : "ranks ") + ranges_of(ascending);
}

std::string listed_words(const std::set<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string counted(std::uint64_t count, std::string_view noun) {
  std::string text = std::to_string(count) + " " + std::string(noun);
  if (count == 1) return text;
  return text + (noun.ends_with("ss") ? "es" : "s");
}

std::string bytes_text(std::uint64_t bytes) {
  if (bytes < 1024) return counted(bytes, "byte");
  constexpr std::array<const char*, 4> kUnits = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %s", value, kUnits[unit]);
  return text.data();
}

std::string seconds_text(std::int64_t nanoseconds) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t seconds = nanoseconds / kSecond;
  if (seconds >= 60) return std::to_string(seconds / 60) + " min " + std::to_string(seconds % 60) + " s";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f s", static_cast<double>(nanoseconds) / static_cast<double>(kSecond));
  return text.data();
}

}  // namespace devsan::report
