#include "doctor/near_miss.h"

#include <algorithm>
#include <cstddef>

#include "doctor/text.h"

namespace devsan::doctor {
namespace {

constexpr std::size_t kLongest = 64;  // nobody means a known word by more

// The only word that begins with the text, or the longest one within it. A few letters are in many words.
std::string related(const std::string& text, const std::vector<std::string>& known) {
  constexpr std::size_t kFewest = 4;
  std::vector<std::string> longer;
  std::string within;
  for (const std::string& word : known) {
    const std::string small = lower(word);
    if (text.size() >= kFewest && small.starts_with(text)) longer.push_back(word);
    if (small.size() >= kFewest && small.size() > within.size() && text.find(small) != std::string::npos) within = word;
  }
  return longer.size() == 1 ? longer.front() : within;
}

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
  if (text.size() > kLongest) return {};
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

std::string likely_meant(std::string_view text, const std::vector<std::string>& known) {
  if (text.size() > kLongest) return {};
  std::vector<std::string> small;
  for (const std::string& word : known) small.push_back(lower(word));
  const std::string wanted = lower(std::string(text));
  auto found = std::ranges::find(small, wanted);
  if (found == small.end()) found = std::ranges::find(small, nearest(wanted, small));
  return found != small.end() ? known[static_cast<std::size_t>(found - small.begin())] : related(wanted, known);
}

std::string did_you_mean(std::string_view text, const std::vector<std::string>& known) {
  const std::string guess = nearest(text, known);
  return guess.empty() ? guess : "; did you mean " + guess + "?";
}

}  // namespace devsan::doctor
