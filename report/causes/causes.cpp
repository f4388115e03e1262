#include "report/causes/causes.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "report/causes/cause_text.h"
#include "report/causes/group_backend.h"
#include "report/fixes/patch.h"
#include "report/model/operands.h"
#include "report/program/scopes.h"
#include "report/ranking/answer.h"

namespace devsan::report {
namespace {

// `self.scale = torch.ones(3)`: of an attribute it tells more that the line keeps it than that it makes it.
const slice::Place& place_to_tell(const ranking::Candidate& candidate, const Operand* operand) {
  const slice::Place& telling = *ranking::telling_place(candidate);
  const bool made = telling.role == slice::Role::made || telling.role == slice::Role::history_created;
  if (!made || operand == nullptr || operand->is != trace::NameKind::attribute) return telling;
  const auto stored = std::ranges::find_if(candidate.places, [&](const slice::Place* place) {
    return place->role == slice::Role::stored && place->side == telling.side;
  });
  return stored == candidate.places.end() ? telling : **stored;
}

Suspect suspect_of(const ranking::Candidate& candidate, const Finding& finding) {
  const slice::Side side = ranking::telling_place(candidate)->side;
  const Operand* odd = first_odd(finding.operands);
  const Operand* other = odd == nullptr ? nullptr : counterpart_of(*odd, finding.operands);
  if (other != nullptr && side == slice::Side::other) std::swap(odd, other);
  return {candidate, place_to_tell(candidate, odd), odd, other};
}

std::string function_name(program::Node function) {
  const program::Scope* scope = function.file().scopes().made_by(function);
  return scope == nullptr ? std::string() : function.file().scopes().qualified_name(*scope);
}

RootCause cause_of(const Suspect& suspect) {
  const ranking::Candidate& candidate = suspect.candidate;
  RootCause cause;
  cause.file = candidate.file->path();
  cause.line = candidate.line;
  cause.function = function_name(candidate.function);
  cause.source = candidate.file->line_text(candidate.line);
  if (suspect.operand != nullptr) cause.operand = spoken_name(*suspect.operand);
  cause.why = what_line_does(suspect);
  cause.mechanism = name_of(mechanism_of(suspect));
  cause.confidence = Confidence::possible;
  return cause;
}

Fix fix_of(const Suspect& suspect, const Finding& finding, const slice::Code& code) {
  const ranking::Candidate& candidate = suspect.candidate;
  Fix fix{candidate.file->path(), candidate.line, what_to_change(suspect, finding, code)};
  if (auto patch = fixes::patch_for(finding, candidate, code)) {
    fix.text = std::move(patch->text);
    fix.patches.push_back({std::move(patch->file), std::move(patch->diff)});
  }
  return fix;
}

void set_first(Finding& finding, const ranking::Ranked& first, const slice::Code& code) {
  const Suspect suspect = suspect_of(*first.candidate, finding);
  RootCause cause = cause_of(suspect);
  if (const std::string text = what_disagreed(suspect); !text.empty()) cause.why += " " + text;
  if (first.likely) cause.confidence = Confidence::likely;
  finding.fix = fix_of(suspect, finding, code);
  finding.root_cause = std::move(cause);
}

void add_alternative(Finding& finding, const ranking::Ranked& line, const slice::Code& code) {
  const Suspect suspect = suspect_of(*line.candidate, finding);
  RootCause cause = cause_of(suspect);
  cause.fix = fix_of(suspect, finding, code);
  finding.alternatives.push_back(std::move(cause));
}

}  // namespace

void add_causes(Finding& finding, slice::Codebase& codebase) {
  if (finding.kind != Kind::device_mismatch || !finding.raised || finding.traffic) return;
  const ranking::Answer answer(codebase, finding, ranking::Model::standard());
  const std::vector<ranking::Ranked> lines = answer.lines(kMostAlternatives + 1);
  if (!lines.empty()) set_first(finding, lines.front(), answer.code_of(lines.front()));
  for (std::size_t k = 1; k < lines.size(); ++k) {
    add_alternative(finding, lines[k], answer.code_of(lines[k]));
  }
  add_group_backend(finding, codebase);
}

}  // namespace devsan::report
