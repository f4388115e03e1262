// The text of ranking.json, put into the program when it is built.
#pragma once

#include <string_view>

namespace devsan::report::ranking {

extern const std::string_view kRankingJson;

}  // namespace devsan::report::ranking
