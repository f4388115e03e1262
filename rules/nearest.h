// What somebody may have meant who wrote a word that means nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace devsan::rules {

// "; did you mean …?", or nothing.
std::string did_you_mean(std::string_view text, const std::vector<std::string>& known);

}  // namespace devsan::rules
