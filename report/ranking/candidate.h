// Lines where a device could have been decided otherwise, and what speaks for each.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/model/finding.h"
#include "report/ranking/traits.h"
#include "report/slice/code.h"
#include "report/slice/slice.h"

namespace devsan::report::ranking {

enum class Feature : std::uint8_t {
#define DEVSAN_FEATURE(name, meaning) name,
#include "report/ranking/features.def"
#undef DEVSAN_FEATURE
};
constexpr std::size_t kFeatures = 0
#define DEVSAN_FEATURE(name, meaning) +1
#include "report/ranking/features.def"
#undef DEVSAN_FEATURE
    ;
std::string_view name_of(Feature feature);

struct Candidate {
  const program::SourceFile* file = nullptr;
  int line = 0;
  std::vector<const slice::Place*> places;  // that begin in this line
  program::Node statement;
  program::Node function;  // the function, lambda or module whose code it is
  program::Node own;       // the part of the statement that the operand comes through; else none
  Traits said;             // by the line
  Traits own_said;         // by `own`, or else by the statement
  std::array<float, kFeatures> features{};

  float& operator[](Feature feature) { return features[static_cast<std::size_t>(feature)]; }
  float operator[](Feature feature) const { return features[static_cast<std::size_t>(feature)]; }
};

// In the order of files and lines, with their features. `places` outlives them.
std::vector<Candidate> candidates_of(const Finding& finding, const slice::Code& code,
                                     const std::vector<slice::Place>& places);

}  // namespace devsan::report::ranking
