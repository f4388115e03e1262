// Whether a series of numbers grows with the steps of a run, told by its slope: not by how much it has grown, but by
// whether it goes on, as steadily as something does that is never given back.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace devsan::report {

struct GrowthPoint {
  std::uint32_t step = 0;
  double value = 0;
};

struct Slope {
  double per_step = 0;
  std::uint32_t since = 0;  // the step at which the growth began, as far as the slope tells
  double gained = 0;        // in the steps that were looked at
};

// The growth of `points`, oldest first, if they grow: over the last three quarters of the run, or over its last half
// where it began late. In each quarter of these steps the value is higher than in the one before, the growth does not
// fade, and hardly a point lies off the line. What fills and stops, comes and goes, or doubles now and then, grows not.
std::optional<Slope> growth_of(std::span<const GrowthPoint> points);

// The median of the slopes between all pairs of points, which a few odd points do not change; 0 for less than two.
double median_slope(std::span<const GrowthPoint> points);

}  // namespace devsan::report
