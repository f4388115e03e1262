#include <algorithm>
#include <functional>
#include <vector>

#include "report/ranking/context.h"

namespace devsan::report::ranking {

using program::Node;

namespace {

constexpr int kMostHops = 6;

std::vector<float> values_of(const Candidates& candidates, Feature feature) {
  std::vector<float> values;
  for (const Candidate& one : candidates) {
    if (one[feature] > 0) values.push_back(one[feature]);
  }
  std::ranges::sort(values, std::greater());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

void set_rank(Candidates& candidates, Feature of, Feature rank) {
  const std::vector<float> values = values_of(candidates, of);
  for (Candidate& one : candidates) {
    const auto place = std::ranges::find(values, one[of]) - values.begin();
    if (one[of] > 0) one[rank] = 1 / static_cast<float>(1 + place);
  }
}

void set_ends(Candidates& candidates, Feature of, Feature first, Feature last) {
  const std::vector<float> values = values_of(candidates, of);
  for (Candidate& one : candidates) {
    if (one[of] <= 0) continue;
    one[first] = one[of] == values.front() ? 1 : 0;
    one[last] = one[of] == values.back() ? 1 : 0;
  }
}

// Of a candidate on the way from the origin to the use; none for others.
std::optional<std::size_t> place_on_way(const Candidate& candidate) {
  std::optional<std::size_t> place;
  for (const slice::Place* one : candidate.places) {
    if (one->side == slice::Side::odd && one->from_origin)
      place = std::min(place.value_or(*one->from_origin), *one->from_origin);
  }
  return place;
}

struct Stop {
  std::size_t place;
  Candidate* candidate;
  int hop = 0;  // functions that were left since the origin
};

void set_hops(const Context& context, Candidates& candidates) {
  std::vector<Stop> way;
  for (Candidate& one : candidates) {
    if (const auto place = place_on_way(one)) way.push_back({*place, &one});
  }
  std::ranges::stable_sort(way, {}, &Stop::place);
  int hop = -1;
  int knows = -1;
  Node last;
  for (Stop& stop : way) {
    const Node function = stop.candidate->function;
    if (hop < 0 || function != last) ++hop;
    last = function;
    stop.hop = hop;
    if (knows < 0 && context.around(function).knows_device > 0) knows = hop;
  }
  for (const Stop& stop : way) {
    Candidate& one = *stop.candidate;
    one[Feature::hops_from_origin] = static_cast<float>(nearness(2.0 * stop.hop));
    one[Feature::hops_to_use] = static_cast<float>(nearness(2.0 * (hop - stop.hop)));
    if (knows < 0) continue;
    one[Feature::hops_from_device] = static_cast<float>(std::clamp(stop.hop - knows, -kMostHops, kMostHops));
    one[Feature::first_that_knows] = stop.hop == knows ? 1 : 0;
  }
}

}  // namespace

void set_order(const Context& context, Candidates& candidates) {
  set_rank(candidates, Feature::near_odd, Feature::rank_by_distance);
  set_rank(candidates, Feature::near_as_value, Feature::rank_as_value);
  set_rank(candidates, Feature::near_as_module, Feature::rank_as_module);
  set_rank(candidates, Feature::near_as_device, Feature::rank_as_device);
  set_ends(candidates, Feature::odd_argument, Feature::first_argument, Feature::last_argument);
  set_ends(candidates, Feature::odd_bound, Feature::first_bound, Feature::last_bound);
  set_ends(candidates, Feature::odd_stored, Feature::first_stored, Feature::last_stored);
  set_ends(candidates, Feature::odd_returned, Feature::first_returned, Feature::last_returned);
  set_ends(candidates, Feature::odd_object_moved, Feature::first_moved, Feature::last_moved);
  set_ends(candidates, Feature::odd_constructed, Feature::first_constructed, Feature::last_constructed);
  set_hops(context, candidates);
}

}  // namespace devsan::report::ranking
