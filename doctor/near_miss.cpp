#include "doctor/near_miss.h"

#include <algorithm>
#include <cstddef>

namespace devsan::doctor {
namespace {

// Letters left out, put in, replaced or swapped with their neighbour.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      const std::size_t same = a[i - 1] == b[j - 1] ? 0 : 1;
      cost[i][j] = std::min({cost[i - 1][j - 1] + same, cost[i - 1][j] + 1, cost[i][j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string nearest(std::string_view text, const std::vector<std::string>& known) {
  constexpr std::size_t kMaxSlips = 2;
  std::string best;
  std::size_t least = kMaxSlips + 1;
  for (const std::string& word : known) {
    const std::size_t distance = edit_distance(text, word);
    if (distance < least && distance <= word.size() / 3) {
      least = distance;
      best = word;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view text, const std::vector<std::string>& known) {
  constexpr std::size_t kLongest = 64;  // nobody means a known word by more
  const std::string guess = text.size() <= kLongest ? nearest(text, known) : std::string();
  return guess.empty() ? guess : "; did you mean " + guess + "?";
}

}  // namespace devsan::doctor
