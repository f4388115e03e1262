#include "report/alternatives.h"

#include "report/operands.h"
#include "report/program/scopes.h"
#include "report/ranking/answer.h"

namespace devsan::report {
namespace {

// Of the side that the place belongs to: what the sentence is about.
const Operand* operand_of(const slice::Place& place, const Finding& finding) {
  const Operand* odd = first_odd(finding.operands);
  if (odd == nullptr || place.side != slice::Side::other) return odd;
  const Operand* other = counterpart_of(*odd, finding.operands);
  return other == nullptr ? odd : other;
}

std::string sentence_about(slice::Role role, const std::string& operand) {
  std::string text(slice::sentence_of(role));
  for (std::size_t at = text.find("{}"); at != std::string::npos; at = text.find("{}", at + operand.size())) {
    text.replace(at, 2, operand);
  }
  if (!text.empty() && text.front() >= 'a' && text.front() <= 'z') text.front() = static_cast<char>(text.front() - 32);
  return text + ".";
}

std::string function_name(program::Node function) {
  const program::Scope* scope = function.file().scopes().made_by(function);
  return scope == nullptr ? std::string() : function.file().scopes().qualified_name(*scope);
}

RootCause cause_of(const ranking::Ranked& ranked, const Finding& finding) {
  const ranking::Candidate& candidate = *ranked.candidate;
  const slice::Place& place = *ranking::telling_place(candidate);
  const Operand* operand = operand_of(place, finding);
  const std::string name = operand == nullptr ? "the operand" : spoken_name(*operand);
  RootCause cause;
  cause.file = candidate.file->path();
  cause.line = candidate.line;
  cause.function = function_name(candidate.function);
  cause.operand = operand == nullptr ? std::string() : name;
  cause.why = sentence_about(place.role, operand == nullptr ? name : "`" + name + "`");
  return cause;
}

bool is_at(const RootCause& cause, const RootCause& other) {
  return cause.line == other.line && cause.file == other.file;
}

}  // namespace

void add_alternatives(Finding& finding, slice::Codebase& codebase) {
  if (finding.kind != Kind::device_mismatch || !finding.raised || finding.traffic) return;
  finding.root_cause.reset();
  const ranking::Answer answer(codebase, finding, ranking::Model::standard());
  for (const ranking::Ranked& one : answer.lines(kMostAlternatives + 1)) {
    RootCause cause = cause_of(one, finding);
    if (!finding.root_cause) {
      finding.root_cause = std::move(cause);
    } else if (!is_at(*finding.root_cause, cause)) {
      finding.alternatives.push_back(std::move(cause));
    }
    if (finding.alternatives.size() == kMostAlternatives) return;
  }
}

}  // namespace devsan::report
