#include "report/findings/rank_records.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "report/findings/build_findings.h"
#include "report/model/facts.h"
#include "report/model/frames.h"
#include "report/model/operands.h"
#include "report/model/placements.h"
#include "report/text/words.h"

namespace devsan::report {
namespace {

constexpr std::size_t kMostLinks = 4;       // from a variable to a value
constexpr std::size_t kMostShown = 3;       // values of one rank
constexpr std::size_t kMostTensors = 4096;  // of one process
constexpr std::string_view kEntries = " entries";

void add_devices(const trace::TraceFile& trace, std::uint32_t step, RecordedValues& devices) {
  for (const KeptTensor& tensor : kept_tensors_of(trace)) {
    const Stay* const then = tensor.at(step);
    const Stay& stay = then != nullptr ? *then : tensor.stays.front();
    if (stay.has(trace::kPlaceEmpty) || devices.size() >= kMostTensors) continue;
    devices[tensor.name()].insert(stay.text());
  }
}

void add_settings(const trace::TraceFile& trace, std::uint32_t step, RecordedValues& settings) {
  for (const trace::SettingPayload& setting : trace.settings()) {
    std::set<std::string>& values =
        settings[std::string(trace.string(setting.owner)) + "." + std::string(trace.string(setting.name))];
    if (!values.empty() && setting.step > step) continue;
    values = {std::string(trace.string(setting.value))};
  }
}

// Empty for what has no value that could be told in a word.
std::string value_of(const ObjectFact& object) {
  using enum trace::ObjectKind;
  switch (object.kind) {
    case boolean:
      return object.number.value_or(0) != 0 ? "True" : "False";
    case number:
      return object.number ? std::to_string(*object.number) : "";
    case string:
      return object.text.empty() ? "" : "'" + object.text + "'";
    case device:
      return object.text;
    case tensor:
    case parameter:
    case generator:
      return object.device;
    case list:
    case tuple:
    case dict:
    case set:
      return object.number ? std::to_string(*object.number) + std::string(kEntries) : "";
    case none:
      return "None";
    default:
      return "";
  }
}

// ".scale", "[offload]", "[1]"; nothing of links that hold no value of the program's.
std::optional<std::string> segment_of(const LinkFact& link) {
  using enum trace::FactLinkKind;
  switch (link.kind) {
    case attribute:
    case parameter:
    case buffer:
    case child:
      return "." + link.name;
    case entry:
      if (!link.name.empty()) return "." + link.name;
      [[fallthrough]];
    case numbered_entry:
      return "[" + std::to_string(link.index.value_or(0)) + "]";
    case keyed_entry:
      return "[" + link.name + "]";
    default:
      return std::nullopt;
  }
}

// Of each object the shortest way from a variable, those of the innermost frame first.
void add_variables(const Facts& facts, RecordedValues& variables) {
  struct Way {
    ObjectIndex object;
    std::string path;
    std::string scope;
    std::size_t links;
  };
  std::deque<Way> ways;
  for (const VariableFact& variable : facts.variables) {
    if (!variable.frame || *variable.frame >= facts.frames.size()) continue;
    const Frame& frame = facts.frames[*variable.frame];
    if (frame.torch || frame.library) continue;
    const bool global = variable.kind == trace::VariableKind::global;
    ways.push_back({variable.object, variable.name, global ? std::string(base_name(frame.file)) : frame.function, 0});
  }
  std::set<ObjectIndex> seen;
  for (; !ways.empty(); ways.pop_front()) {
    const Way& way = ways.front();
    const ObjectFact& object = facts.objects.at(way.object);
    if (const std::string value = value_of(object); !value.empty()) {
      variables["`" + way.path + "` in " + way.scope].insert(value);
    }
    if (way.links == kMostLinks || object.is_tensor() || !seen.insert(way.object).second) continue;
    for (const LinkFact* const link : facts.held_by(way.object)) {
      if (const auto segment = segment_of(*link)) {
        ways.push_back({link->to, way.path + *segment, way.scope, way.links + 1});
      }
    }
  }
}

void add_facts(const trace::TraceFile& trace, const Finding& finding, bool had_it, RecordedValues& variables) {
  const auto recorded = [&](const trace::Meeting& meeting) { return trace.facts_of(meeting) != nullptr; };
  if (std::ranges::none_of(trace.meetings(), recorded)) return;
  FactsOfRun facts;
  facts.add(trace, build_findings(trace));
  for (const Facts& one : facts.meetings) {
    if (!one.recorded || (had_it && one.finding != finding.id)) continue;
    add_variables(one, variables);
  }
}

// "cuda pinned" of "cuda:3 pinned".
std::string comparable(const std::string& value) {
  const std::size_t colon = value.find(':');
  if (colon == std::string::npos || value.find_first_of("'/") != std::string::npos) return value;
  const std::size_t end = value.find(' ', colon);
  return value.substr(0, colon) + (end == std::string::npos ? "" : value.substr(end));
}

std::set<std::string> comparable(const std::set<std::string>& values) {
  std::set<std::string> result;
  for (const std::string& value : values) result.insert(comparable(value));
  return result;
}

// Also of how many entries something has.
bool is_count(const std::string& value) {
  return !value.empty() &&
         value.find_first_not_of("-0123456789") == (value.ends_with(kEntries) ? value.find(' ') : std::string::npos);
}

// What one name stands for on each side.
struct Sides {
  std::set<std::string> here;
  std::set<std::string> there;
  std::size_t told_there = 0;  // ranks

  bool differ() const {
    const std::set<std::string> ours = comparable(here);
    const std::set<std::string> theirs = comparable(there);
    return ours.size() == 1 && !theirs.empty() && !theirs.contains(*ours.begin());
  }
  // Variables have other values for many reasons. Numbers are likely the rank's own, unless all others have the same.
  bool differ_for_sure() const {
    const bool numbers = std::ranges::all_of(here, is_count) && std::ranges::all_of(there, is_count);
    return differ() && comparable(there).size() == 1 && (!numbers || told_there > 1);
  }
};

Sides sides_of(const std::string& name, RecordedValues RankRecords::*what, const std::vector<RankRecords>& here,
               const std::vector<RankRecords>& there) {
  Sides sides;
  for (const RankRecords& rank : here) {
    const auto found = (rank.*what).find(name);
    if (found == (rank.*what).end()) return {};
    sides.here.insert(found->second.begin(), found->second.end());
  }
  for (const RankRecords& rank : there) {
    const auto found = (rank.*what).find(name);
    if (found == (rank.*what).end()) continue;
    sides.there.insert(found->second.begin(), found->second.end());
    ++sides.told_there;
  }
  return sides;
}

// Whether the finding speaks of the tensor: "self.scale" is the end of "model.scale".
bool is_named_by(const Finding& finding, const std::string& tensor) {
  const auto same = [&](const std::string& name) {
    const std::string own = name.starts_with("self.") ? name.substr(5) : name;
    return !own.empty() && (tensor == own || tensor.ends_with("." + own));
  };
  if (finding.expectation && std::ranges::any_of(finding.expectation->names, same)) return true;
  return std::ranges::any_of(finding.operands, [&](const Operand& operand) { return same(operand.name); });
}

// Names that differ in the same way are told together, by the first of them.
struct Alike {
  std::string name;
  Sides sides;
  bool named = false;
  std::size_t more = 0;
};

std::vector<Alike> devices_apart(const std::vector<RankRecords>& here, const std::vector<RankRecords>& there,
                                 const Finding& finding) {
  const auto said = [&](const Sides& sides) {
    return std::ranges::any_of(finding.differs, [&](const Difference& known) {
      return sides.here.contains(known.here) && listed_words(sides.there) == known.there;
    });
  };
  std::vector<Alike> all;
  for (const auto& [name, values] : here.front().devices) {
    Sides sides = sides_of(name, &RankRecords::devices, here, there);
    const bool named = is_named_by(finding, name);
    if (!sides.differ() || (named && said(sides))) continue;
    const auto same = std::ranges::find_if(all, [&](const Alike& one) {
      return comparable(one.sides.here) == comparable(sides.here) &&
             comparable(one.sides.there) == comparable(sides.there);
    });
    if (same == all.end()) {
      all.push_back({name, std::move(sides), named, 0});
    } else {
      ++same->more;
      if (named && !same->named) *same = {name, std::move(sides), true, same->more};
    }
  }
  std::ranges::stable_sort(all, [](const Alike& left, const Alike& right) { return left.named && !right.named; });
  return all;
}

}  // namespace

RankRecords records_of(const trace::TraceFile& trace, const Finding& finding, bool had_it) {
  RankRecords records;
  add_devices(trace, finding.step, records.devices);
  add_settings(trace, finding.step, records.settings);
  add_facts(trace, finding, had_it, records.variables);
  return records;
}

std::vector<Difference> differences_between(const std::vector<RankRecords>& here, const std::vector<RankRecords>& there,
                                            const Finding& finding, std::size_t most) {
  std::vector<Difference> found;
  if (here.empty() || there.empty()) return found;
  const auto shown = [](const std::set<std::string>& values) {
    return values.size() <= kMostShown ? listed_words(values) : std::to_string(values.size()) + " values";
  };
  const auto add = [&](std::string what, const Sides& sides) {
    if (found.size() < most) found.push_back({std::move(what), shown(sides.here), shown(sides.there)});
  };
  for (const Alike& one : devices_apart(here, there, finding)) {
    add("device of `" + one.name + "`" + (one.more > 0 ? " and " + std::to_string(one.more) + " more" : ""), one.sides);
  }
  for (const auto& [name, values] : here.front().settings) {
    const Sides sides = sides_of(name, &RankRecords::settings, here, there);
    if (sides.differ()) add("setting `" + name + "`", sides);
  }
  for (const auto& [name, values] : here.front().variables) {
    const Sides sides = sides_of(name, &RankRecords::variables, here, there);
    if (sides.differ_for_sure()) add(name, sides);
  }
  return found;
}

}  // namespace devsan::report
