#include "report/findings/growth.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace devsan::report {
namespace {

constexpr std::size_t kLeastPoints = 8;
constexpr std::uint32_t kLeastSteps = 16;  // in what is looked at
constexpr std::size_t kQuarters = 4;

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// The points of each fourth of the steps.
std::array<std::span<const GrowthPoint>, kQuarters> quarters_of(std::span<const GrowthPoint> points) {
  std::array<std::span<const GrowthPoint>, kQuarters> quarters;
  const double first = points.front().step;
  const double steps = points.back().step - first;
  auto begin = points.begin();
  for (std::size_t q = 0; q < kQuarters; ++q) {
    const double limit = first + steps * static_cast<double>(q + 1) / kQuarters;
    const auto end = q + 1 == kQuarters ? points.end()
                                        : std::ranges::find_if(begin, points.end(),
                                                               [&](const GrowthPoint& p) { return p.step > limit; });
    quarters[q] = {begin, end};
    begin = end;
  }
  return quarters;
}

double mean(std::span<const GrowthPoint> points) {
  double sum = 0;
  for (const GrowthPoint& point : points) sum += point.value;
  return sum / static_cast<double>(points.size());
}

// Higher in each quarter than in the one before, by about as much each time: a cache that fills slows down.
bool rises_steadily(std::span<const GrowthPoint> points) {
  std::array<double, kQuarters> means{};
  const auto quarters = quarters_of(points);
  for (std::size_t q = 0; q < kQuarters; ++q) {
    if (quarters[q].empty()) return false;
    means[q] = mean(quarters[q]);
  }
  const double usual = (means[kQuarters - 1] - means[0]) / (kQuarters - 1);
  for (std::size_t q = 1; q < kQuarters; ++q) {
    const double rise = means[q] - means[q - 1];
    if (rise < usual * 0.5 || rise > usual * 1.6) return false;
  }
  if (means[3] - means[2] < (means[1] - means[0]) * 0.65) return false;
  const auto highest_at_first = std::ranges::max(quarters.front(), {}, &GrowthPoint::value).value;
  const auto lowest_at_last = std::ranges::min(quarters.back(), {}, &GrowthPoint::value).value;
  return usual > 0 && lowest_at_last > highest_at_first;
}

std::optional<Slope> steady_growth(std::span<const GrowthPoint> points) {
  if (points.size() < kLeastPoints || points.back().step - points.front().step < kLeastSteps) return std::nullopt;
  if (!rises_steadily(points)) return std::nullopt;
  const double slope = median_slope(points);
  const double gained = slope * (points.back().step - points.front().step);
  if (slope <= 0) return std::nullopt;
  std::vector<double> bases;
  for (const GrowthPoint& point : points) bases.push_back(point.value - slope * point.step);
  const double base = median(bases);
  std::vector<double> off;
  for (const GrowthPoint& point : points) off.push_back(std::abs(point.value - slope * point.step - base));
  std::ranges::sort(off);
  if (off[off.size() / 2] > gained * 0.06 || off[off.size() * 9 / 10] > gained * 0.15) return std::nullopt;
  const double highest = std::ranges::max(points, {}, &GrowthPoint::value).value;
  if (points.back().value < highest - gained * 0.15) return std::nullopt;
  return Slope{slope, points.front().step, gained};
}

// Where the line meets what was there before.
std::uint32_t begin_of(std::span<const GrowthPoint> points, const Slope& slope) {
  const double lowest = std::ranges::min(points, {}, &GrowthPoint::value).value;
  const GrowthPoint& last = points.back();
  const double steps = (last.value - lowest) / slope.per_step;
  const double begin = std::max<double>(last.step - steps, points.front().step);
  return static_cast<std::uint32_t>(std::lround(begin));
}

}  // namespace

double median_slope(std::span<const GrowthPoint> points) {
  std::vector<double> slopes;
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t k = i + 1; k < points.size(); ++k) {
      if (points[k].step == points[i].step) continue;
      slopes.push_back((points[k].value - points[i].value) / (points[k].step - points[i].step));
    }
  }
  return slopes.empty() ? 0 : median(slopes);
}

std::optional<Slope> growth_of(std::span<const GrowthPoint> points) {
  if (points.size() < kLeastPoints) return std::nullopt;
  const double first = points.front().step;
  const double steps = points.back().step - first;
  for (const double left_out : {0.25, 0.5}) {
    const auto begin =
        std::ranges::find_if(points, [&](const GrowthPoint& point) { return point.step >= first + steps * left_out; });
    auto slope = steady_growth({begin, points.end()});
    if (!slope) continue;
    slope->since = begin_of(points, *slope);
    return slope;
  }
  return std::nullopt;
}

}  // namespace devsan::report
