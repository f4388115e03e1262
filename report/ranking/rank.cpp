#include "report/ranking/rank.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace devsan::report::ranking {

std::vector<Ranked> rank(const std::vector<Candidate>& candidates, const Model& model) {
  std::vector<Ranked> ranked;
  double best = 0;
  for (const Candidate& candidate : candidates) {
    const double score = model.score(candidate);
    best = ranked.empty() ? score : std::max(best, score);
    ranked.push_back({&candidate, score, false});
  }
  double sum = 0;
  for (Ranked& one : ranked) sum += one.share = std::exp(one.share - best);
  for (Ranked& one : ranked) one.share /= sum;
  std::ranges::stable_sort(ranked, [](const Ranked& left, const Ranked& right) { return left.share > right.share; });
  if (!ranked.empty()) ranked.front().likely = ranked.front().share >= model.likely();
  return ranked;
}

const slice::Place* telling_place(const Candidate& candidate) {
  const auto order = [](const slice::Place* place) {
    const bool elsewhere = place->leads_to_origin && !*place->leads_to_origin;
    return std::tuple(place->side == slice::Side::program, place->side == slice::Side::other, elsewhere, place->role,
                      place->distance);
  };
  const auto found = std::ranges::min_element(candidate.places, {}, order);
  return found == candidate.places.end() ? nullptr : *found;
}

}  // namespace devsan::report::ranking
