#include "report/ranking/model.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "report/ranking/ranking_json.h"

namespace devsan::report::ranking {
namespace {

Feature feature_named(const std::string& name) {
  for (std::size_t k = 0; k < kFeatures; ++k) {
    if (name_of(static_cast<Feature>(k)) == name) return static_cast<Feature>(k);
  }
  throw std::runtime_error("the ranking has an unknown feature: " + name);
}

bool leads_on(int next, std::size_t here, std::size_t splits, std::size_t leaves) {
  if (next < 0) return static_cast<std::size_t>(-1 - next) < leaves;
  return static_cast<std::size_t>(next) > here && static_cast<std::size_t>(next) < splits;
}

}  // namespace

Model::Model(std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text);
  std::vector<Feature> features;
  for (const auto& name : json.at("features")) features.push_back(feature_named(name.get<std::string>()));
  for (const auto& one : json.at("trees")) {
    Tree tree;
    tree.leaves = one.at("leaves").get<std::vector<float>>();
    const auto& splits = one.at("splits");
    for (const auto& split : splits) {
      tree.splits.push_back({features.at(split.at(0).get<std::size_t>()), split.at(1).get<float>(),
                             split.at(2).get<int>(), split.at(3).get<int>()});
    }
    for (std::size_t k = 0; k < tree.splits.size(); ++k) {
      const Split& split = tree.splits[k];
      const bool sound = leads_on(split.below, k, tree.splits.size(), tree.leaves.size()) &&
                         leads_on(split.above, k, tree.splits.size(), tree.leaves.size());
      if (!sound) throw std::runtime_error("the ranking has a tree that leads nowhere");
    }
    if (tree.leaves.empty()) throw std::runtime_error("the ranking has a tree without leaves");
    trees_.push_back(std::move(tree));
  }
  likely_ = json.at("likely").get<double>();
}

const Model& Model::standard() {
  static const Model model(kRankingJson);
  return model;
}

double Model::score(const Candidate& candidate) const {
  double sum = 0;
  for (const Tree& tree : trees_) {
    int at = tree.splits.empty() ? -1 : 0;
    while (at >= 0) {
      const Split& split = tree.splits[static_cast<std::size_t>(at)];
      at = candidate[split.feature] <= split.threshold ? split.below : split.above;
    }
    sum += static_cast<double>(tree.leaves[static_cast<std::size_t>(-1 - at)]);
  }
  return sum;
}

}  // namespace devsan::report::ranking
