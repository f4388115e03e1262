#include "report/ranking/candidate.h"

#include <algorithm>
#include <map>

#include "report/program/expressions.h"
#include "report/program/positions.h"
#include "report/ranking/context.h"
#include "report/slice/slicer.h"

namespace devsan::report::ranking {

using program::Field;
using program::Kind;
using program::Node;
using slice::Aspect;
using slice::Place;
using slice::Role;

namespace {

constexpr std::array<std::string_view, kFeatures> kNames{
#define DEVSAN_FEATURE(name, meaning) #name,
#include "report/ranking/features.def"
#undef DEVSAN_FEATURE
};

bool carries(Role role) {
  return slice::binds_value(role) || role == Role::default_stands_by;
}

// `super().__init__()`: nothing could be given there.
bool is_bare_super_call(const Place& place) {
  const program::CallParts call = program::call_parts(place.node);
  return call && call.arguments.empty() && call.receiver().text() == "super()";
}

// No tensor, module or device comes through it.
bool is_refuted(const Place& place) {
  if (carries(place.role) && place.aspect != Aspect::device && slice::is_empty_value(place.value)) return true;
  return (place.role == Role::argument || place.role == Role::argument_left_out) && is_bare_super_call(place);
}

// The smallest part of the statement that the odd operand comes through.
Node own_part(const std::vector<const Place*>& places) {
  Node smallest;
  for (const Place* place : places) {
    const bool gives = carries(place->role) || place->role == Role::returned || place->role == Role::returned_by_hook ||
                       place->role == Role::filled;
    if (place->side != slice::Side::odd || place->aspect == Aspect::device || !gives) continue;
    const auto size = [](Node node) { return node.end_byte() - node.begin_byte(); };
    if (!smallest || size(place->value) < size(smallest)) smallest = place->value;
  }
  return smallest;
}

Candidate candidate_at(int line, std::vector<const Place*> places) {
  const program::SourceFile& file = places.front()->node.file();
  Candidate candidate;
  candidate.file = &file;
  candidate.line = line;
  candidate.places = std::move(places);
  candidate.statement = program::statement_at(file, line);
  candidate.function = slice::body_of(candidate.places.front()->node);
  candidate.own = own_part(candidate.places);
  candidate.said = traits_of_line(file, line);
  candidate.own_said = traits_of(candidate.own ? candidate.own : candidate.statement);
  return candidate;
}

}  // namespace

std::string_view name_of(Feature feature) {
  return kNames[static_cast<std::size_t>(feature)];
}

std::vector<Candidate> candidates_of(const Finding& finding, const slice::Code& code,
                                     const std::vector<Place>& places) {
  std::map<std::pair<std::string_view, int>, std::vector<const Place*>> lines;
  for (const Place& place : places) {
    if (place.node && !is_refuted(place)) lines[{place.node.file().path(), place.node.line()}].push_back(&place);
  }
  std::vector<Candidate> candidates;
  for (auto& [at, some] : lines) {
    const bool only_stack = std::ranges::all_of(some, [](const Place* one) { return one->role == Role::on_stack; });
    if (!only_stack) candidates.push_back(candidate_at(at.second, std::move(some)));
  }
  const Context context(finding, code);
  for (Candidate& candidate : candidates) {
    set_distances(context, candidate);
    set_history(context, candidate);
    set_text(context, candidate);
    set_scope(context, candidate);
    set_shape(context, candidate);
    set_beside(context, candidate);
    set_failure(context, candidate);
  }
  set_order(context, candidates);
  return candidates;
}

}  // namespace devsan::report::ranking
