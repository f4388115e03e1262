#include "report/wording/apart_text.h"

#include "report/text/words.h"

namespace devsan::report {
namespace {

std::string these_ranks(const std::vector<int>& ranks) {
  return "R" + ranks_text(ranks).substr(1);
}

// "was ended by SIGTERM", of several: "were ended by SIGTERM"
std::string said_of(const std::vector<int>& ranks, const std::string& what) {
  return ranks.size() > 1 && what.starts_with("was ") ? "were " + what.substr(4) : what;
}

}  // namespace

std::vector<std::string> apart_sentences(const Finding& finding) {
  std::vector<std::string> sentences;
  for (const EndedRanks& ended : finding.ended_ranks) {
    sentences.push_back(these_ranks(ended.ranks) + " came to the same step and " + said_of(ended.ranks, ended.what));
  }
  if (!finding.other_ranks.empty())
    sentences.push_back(these_ranks(finding.other_ranks) + " ran as far and had it not");
  return sentences;
}

std::string difference_text(const Difference& difference) {
  return difference.what + ": " + difference.here + " here, " + difference.there + " there";
}

}  // namespace devsan::report
