#include "report/ranking/answer.h"

#include <algorithm>

#include "report/slice/history.h"

namespace devsan::report::ranking {
namespace {

constexpr std::size_t kAhead = 2;  // lines of libraries before the first one of the program

// The step that decided the operand's device is a line of installed code.
bool is_placed_by_library(const Operand& operand) {
  const LineageStep* step = slice::deciding_step(operand);
  return step != nullptr && step->at.library;
}

}  // namespace

Answer::Tier::Tier(slice::Codebase& codebase, const Finding& finding, slice::Files files, const Model& model)
    : code(codebase, finding, files) {
  if (code.empty()) return;
  places = slice::slice_of(finding, code);
  candidates = candidates_of(finding, code, places);
  if (files == slice::Files::with_libraries) {
    std::erase_if(candidates, [&](const Candidate& one) { return !code.is_library(*one.file); });
  }
  ranked = rank(candidates, model);
}

Answer::Answer(slice::Codebase& codebase, const Finding& finding, const Model& model)
    : program_(std::make_unique<Tier>(codebase, finding, slice::Files::program, model)) {
  const bool within_library = finding.where && finding.where->library;
  if (!within_library && !program_->ranked.empty()) return;
  libraries_ = std::make_unique<Tier>(codebase, finding, slice::Files::with_libraries, model);
  libraries_first_ = std::ranges::any_of(finding.operands, is_placed_by_library);
}

std::vector<Ranked> Answer::lines(std::size_t most) const {
  static const std::vector<Ranked> kNone;
  const std::vector<Ranked>& own = program_->ranked;
  const std::vector<Ranked>& installed = libraries_ == nullptr ? kNone : libraries_->ranked;
  std::vector<Ranked> lines;
  std::size_t next_own = 0;
  std::size_t next_installed = 0;
  while (lines.size() < most && (next_own < own.size() || next_installed < installed.size())) {
    const bool turn = libraries_first_ ? next_installed < kAhead + next_own : next_installed < next_own;
    const bool from_library = next_own == own.size() || (turn && next_installed < installed.size());
    lines.push_back(from_library ? installed[next_installed++] : own[next_own++]);
    // Either side may be the one to blame.
    if (libraries_ != nullptr) lines.back().likely = false;
  }
  return lines;
}

const slice::Code& Answer::code_of(const Ranked& line) const {
  const bool of_library = libraries_ != nullptr && libraries_->code.is_library(*line.candidate->file);
  return of_library ? libraries_->code : program_->code;
}

}  // namespace devsan::report::ranking
