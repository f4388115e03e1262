#include "rules/nearest.h"

#include "doctor/near_miss.h"

namespace devsan::rules {

std::string did_you_mean(std::string_view text, const std::vector<std::string>& known) {
  constexpr std::size_t kLongest = 64;  // nobody means a known word by more
  const std::string guess = text.size() <= kLongest ? doctor::nearest(text, known) : std::string();
  return guess.empty() ? guess : "; did you mean " + guess + "?";
}

}  // namespace devsan::rules
