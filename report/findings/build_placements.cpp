#include "report/findings/build_placements.h"

#include <algorithm>
#include <tuple>

#include "report/findings/build_expectations.h"
#include "report/findings/build_findings.h"
#include "report/findings/lines_of_trace.h"
#include "report/model/frames.h"
#include "report/model/merge.h"
#include "report/model/operands.h"
#include "report/wording/placement_text.h"
#include "rules/pattern.h"

namespace devsan::report {
namespace {

constexpr std::size_t kMostNames = 8;
constexpr std::size_t kMostFindings = 32;  // of one rule in one process

Expectation expectation_of(const rules::Rule& rule) {
  Expectation expectation;
  expectation.rule = rule.name;
  expectation.sentence = rule.sentence;
  expectation.file = rule.file;
  expectation.line = rule.line;
  return expectation;
}

// "cuda:local_rank" is that of the process; none where its rank is not known.
std::optional<std::string> device_of_rule(const rules::Where& where, const trace::TraceFile& trace) {
  const std::size_t colon = where.device.find(':');
  const std::string index = colon == std::string::npos ? std::string() : where.device.substr(colon + 1);
  if (index != "local_rank" && index != "rank") return where.device;
  const int rank = index == "rank" ? trace.rank().value_or(-1) : trace.header().local_rank;
  return rank >= 0 ? std::optional(where.device.substr(0, colon + 1) + std::to_string(rank)) : std::nullopt;
}

bool is_on(const std::string& device, const rules::Where& where, const trace::TraceFile& trace) {
  const auto expected = device_of_rule(where, trace);
  return !expected /* nothing is known to be wrong */ || device == *expected || device.starts_with(*expected + ":");
}

bool is_at(const Stay& stay, const rules::Where& where, const trace::TraceFile& trace) {
  if (!is_on(stay.device, where, trace)) return false;
  return !where.pinned || stay.has(trace::kPlacePinned) || !device_of_rule(where, trace);
}

std::string expected_text(const rules::Rule& rule, const trace::TraceFile& trace) {
  std::string text;
  for (const rules::Where& where : rule.places) {
    const std::string device = device_of_rule(where, trace).value_or(where.device);
    text += (text.empty() ? "" : " or ") + device + (where.pinned ? " pinned" : "");
  }
  return text;
}

// Whether a rule says something of a stay: it has steps in common, and is no placeholder.
bool says_something_of(const rules::Rule& rule, const KeptTensor& track, std::size_t index, std::uint32_t last_step) {
  const Stay& stay = track.stays[index];
  if (stay.has(trace::kPlaceEmpty)) return false;
  if (track.kind == trace::PlaceKind::state && stay.has(trace::kPlaceScalar)) return false;
  const std::int64_t end = index + 1 < track.stays.size() ? track.stays[index + 1].step : std::int64_t{last_step} + 1;
  return rules::meet(rule.steps, stay.step, std::max<std::int64_t>(end - 1, stay.step));
}

// Whether a rule's steps are among those of a wait or a copy. Of one that skipped steps, only two are known.
bool happened_in_steps_of(const rules::Rule& rule, const Finding& finding) {
  const Traffic& traffic = *finding.traffic;
  return traffic.each_step ? rules::meet(rule.steps, finding.step, traffic.last_step)
                           : rules::holds(rule.steps, finding.step) || rules::holds(rule.steps, traffic.last_step);
}

class Judge {
 public:
  // `tracks`: what was seen at the ends of steps; `moving`: within them, too.
  Judge(const trace::TraceFile& trace, const std::vector<KeptTensor>& tracks, const std::vector<KeptTensor>& moving)
      : trace_(trace), tracks_(tracks), moving_(moving) {}

  // Sets `applied` where a name has the pattern.
  std::vector<Breach> breaches(const rules::Rule& rule, bool& applied) {
    rules::Pattern::Error error;
    const auto pattern = rules::Pattern::parse(rule.pattern, &error);
    std::vector<const KeptTensor*> matched;
    // What belongs together is moved line by line: only the end of a step tells whether it stays apart.
    for (const KeptTensor& track : rule.about == rules::About::place ? moving_ : tracks_) {
      const bool asked = (rule.kinds & rules::mask_of(track.kind)) != 0;
      if (pattern && asked && pattern->matches(track.path())) matched.push_back(&track);
    }
    if (rule.about == rules::About::activations) return activations(rule, *pattern, applied);
    applied = applied || !matched.empty();
    switch (rule.about) {
      case rules::About::place:
        return misplaced(rule, matched);
      case rules::About::beside_parameter:
        return apart(rule, matched);
      case rules::About::one_device:
        return scattered(rule, matched);
      default:
        return {};
    }
  }

 private:
  std::uint32_t last_step() const { return trace_.header().step; }

  std::vector<Breach> misplaced(const rules::Rule& rule, const std::vector<const KeptTensor*>& matched) const {
    std::vector<Breach> found;
    const std::string expected = expected_text(rule, trace_);
    for (const KeptTensor* track : matched) {
      for (std::size_t k = 0; k < track->stays.size(); ++k) {
        const Stay& stay = track->stays[k];
        const auto right = [&](const rules::Where& where) { return is_at(stay, where, trace_); };
        if (!says_something_of(rule, *track, k, last_step()) || std::ranges::any_of(rule.places, right)) continue;
        if (stay.in_set_up && !has_left(rule, *track, k)) continue;
        found.push_back({track, &stay, expected});
        break;
      }
    }
    return found;
  }

  // Whether it had been where the rule has it, by an earlier stay or by its history. Before the first backward has
  // ended, a tensor that has not may be on its way there.
  bool has_left(const rules::Rule& rule, const KeptTensor& track, std::size_t index) const {
    const auto is_right = [&](const std::string& device) {
      return std::ranges::any_of(rule.places, [&](const rules::Where& where) { return is_on(device, where, trace_); });
    };
    const auto earlier = track.stays.begin() + static_cast<std::ptrdiff_t>(index);
    if (std::any_of(track.stays.begin(), earlier, [&](const Stay& stay) { return is_right(stay.device); })) return true;
    const std::vector<LineageStep> steps = lineage_of(trace_, track.stays[index].lineage);
    return std::ranges::any_of(steps, [&](const LineageStep& step) { return is_right(step.device); });
  }

  const KeptTensor* parameter(const std::string& name) {
    if (by_path_.empty()) {
      for (const KeptTensor& track : tracks_) {
        if (track.kind != trace::PlaceKind::state) by_path_.emplace(track.path(), &track);
      }
    }
    const auto found = by_path_.find(name);
    return found != by_path_.end() ? found->second : nullptr;
  }

  std::vector<Breach> apart(const rules::Rule& rule, const std::vector<const KeptTensor*>& matched) {
    std::vector<Breach> found;
    for (const KeptTensor* track : matched) {
      const KeptTensor* about = parameter(track->owner);
      if (about == nullptr) continue;
      for (const std::uint32_t step : steps_to_compare(rule, *track, *about)) {
        const Stay* own = track->at(step);
        const Stay* beside = about->at(step);
        if (own == nullptr || own->has(trace::kPlaceEmpty) || own->has(trace::kPlaceScalar)) continue;
        if (beside == nullptr || beside->has(trace::kPlaceEmpty) || beside->device == own->device) continue;
        found.push_back({track, own, beside->device});
        break;
      }
    }
    return found;
  }

  // The steps at which one of the two may be elsewhere than before, as far as the rule is about them.
  std::set<std::uint32_t> steps_to_compare(const rules::Rule& rule, const KeptTensor& one,
                                           const KeptTensor& other) const {
    std::set<std::uint32_t> steps;
    for (const KeptTensor* track : {&one, &other}) {
      for (const Stay& stay : track->stays) steps.insert(stay.step);
    }
    for (const auto& span : rule.steps) {
      if (span.first <= last_step()) steps.insert(static_cast<std::uint32_t>(span.first));
    }
    std::erase_if(steps, [&](std::uint32_t step) { return !rules::holds(rule.steps, step); });
    return steps;
  }

  // All that the pattern names together: the device that most of them are on is expected of the others.
  std::vector<Breach> scattered(const rules::Rule& rule, const std::vector<const KeptTensor*>& matched) const {
    std::map<std::string, std::size_t> devices;
    for (const KeptTensor* track : matched) {
      const Stay& last = track->stays.back();
      if (says_something_of(rule, *track, track->stays.size() - 1, last_step())) ++devices[last.device];
    }
    if (devices.size() < 2) return {};
    const auto most = std::ranges::max_element(devices, {}, [](const auto& device) { return device.second; });
    std::vector<Breach> found;
    for (const KeptTensor* track : matched) {
      const Stay& last = track->stays.back();
      const bool judged = says_something_of(rule, *track, track->stays.size() - 1, last_step());
      if (judged && last.device != most->first) found.push_back({track, &last, most->first});
    }
    return found;
  }

  // What lines of a class made, for modules that are the only ones of their class.
  std::vector<Breach> activations(const rules::Rule& rule, const rules::Pattern& pattern, bool& applied) {
    std::map<std::string, bool> types;  // whether all modules of the class are meant
    for (const KeptTensor& module : modules_of(trace_)) {
      const auto [known, is_new] = types.try_emplace(module.type, true);
      known->second = known->second && pattern.matches(module.owner);
    }
    std::vector<Breach> found;
    for (const auto& [type, whole] : types) {
      if (!whole || type.empty()) continue;
      applied = true;
      add_activations(rule, type, found);
    }
    return found;
  }

  void add_activations(const rules::Rule& rule, const std::string& type, std::vector<Breach>& found) {
    const std::string function = type + ".forward";
    const std::uint32_t count = entries_of(trace_, trace::SectionKind::lineage, trace_.header().lineage_used);
    for (std::uint32_t id = 1; id < count; ++id) {
      const auto node = trace_.lineage(trace::LineageId{id});
      if (!node || node->how == trace::How::called) continue;
      const auto site = trace_.site(node->site);
      if (!site) continue;
      const bool here =
          trace_.string(site->user.function) == function || trace_.string(site->innermost.function) == function;
      if (!here) continue;
      Stay stay{0, std::string(trace_.device_name(node->device)), 0, trace::LineageId{id}, 0};
      const auto right = [&](const rules::Where& where) { return is_at(stay, where, trace_); };
      if (std::ranges::any_of(rule.places, right)) continue;
      made_tracks_.push_back(std::make_unique<KeptTensor>(
          KeptTensor{"", "what " + function + " computes", type, trace::PlaceKind::attribute, {stay}}));
      found.push_back({made_tracks_.back().get(), &made_tracks_.back()->stays.front(), expected_text(rule, trace_)});
    }
  }

  const trace::TraceFile& trace_;
  const std::vector<KeptTensor>& tracks_;
  const std::vector<KeptTensor>& moving_;
  std::map<std::string, const KeptTensor*> by_path_;
  std::vector<std::unique_ptr<KeptTensor>> made_tracks_;
};

// Where it was put there: the newest step of its history.
std::optional<Frame> place_of_stay(const trace::TraceFile& trace, const Stay& stay) {
  const std::vector<LineageStep> steps = lineage_of(trace, stay.lineage);
  return steps.empty() || steps.front().at.file.empty() ? std::nullopt : std::optional(steps.front().at);
}

Operand operand_of_breach(const trace::TraceFile& trace, const Breach& breach) {
  Operand operand;
  operand.name = breach.track->name();
  operand.device = breach.stay->device;
  operand.odd = true;
  switch (breach.track->kind) {
    case trace::PlaceKind::parameter:
      operand.is = trace::NameKind::parameter;
      break;
    case trace::PlaceKind::buffer:
      operand.is = trace::NameKind::buffer;
      break;
    default:
      operand.is = trace::NameKind::attribute;
  }
  operand.lineage = lineage_of(trace, breach.stay->lineage);
  return operand;
}

Finding finding_of_breaches(const trace::TraceFile& trace, Expectation expectation,
                            const std::vector<Breach>& breaches) {
  const Breach& first = breaches.front();
  Finding finding;
  finding.kind = Kind::wrong_placement;
  finding.severity = default_severity(finding.kind);
  set_process(finding, trace.header().pid, trace.rank());
  finding.own_device = device_of_rank(trace);
  finding.thread = trace.header().pid;
  finding.where = place_of_stay(trace, *first.stay);
  if (finding.where) finding.stack = {*finding.where};
  finding.operands = {operand_of_breach(trace, first)};
  if (!finding.operands[0].lineage.empty()) finding.op = finding.operands[0].lineage.front().op;
  finding.step = first.stay->step;
  finding.time_ns = first.stay->time_ns;
  expectation.expected = first.expected;
  expectation.found = first.stay->text();
  expectation.tensors = breaches.size();
  for (std::size_t k = 0; k < std::min(breaches.size(), kMostNames); ++k) {
    expectation.names.push_back(breaches[k].track->name());
  }
  finding.expectation = std::move(expectation);
  tell_cause(finding);
  finding.id = identity_of(finding);
  return finding;
}

}  // namespace

bool keeps_rule(const trace::TraceFile& trace, const std::vector<KeptTensor>& tracks,
                const std::vector<KeptTensor>& moving, const rules::Rule& rule) {
  bool applied = false;
  return Judge(trace, tracks, moving).breaches(rule, applied).empty();
}

std::vector<Finding> findings_of(const trace::TraceFile& trace, const Expectation& rule, std::vector<Breach> breaches) {
  using Group = std::tuple<std::string, int, std::string, std::string>;
  std::map<Group, std::vector<Breach>> groups;
  std::vector<Group> order;
  for (Breach& breach : breaches) {
    const auto where = place_of_stay(trace, *breach.stay);
    const Group group{where ? where->file : "", where ? where->line : 0, breach.stay->text(), breach.expected};
    if (!groups.contains(group)) order.push_back(group);
    groups[group].push_back(std::move(breach));
  }
  std::vector<Finding> findings;
  for (const Group& group : order) {
    if (findings.size() == kMostFindings) break;
    findings.push_back(finding_of_breaches(trace, rule, groups[group]));
  }
  return findings;
}

void RuleBook::use_instead(std::vector<rules::Rule> rules, std::set<std::string> off) {
  instead_ = true;
  current_ = std::move(rules);
  off_ = std::move(off);
}

void RuleBook::begin_trace(const trace::TraceFile& trace) {
  if (instead_) return;
  current_.clear();
  off_.clear();
  for (const trace::RuleLine& line : trace.rules()) {
    if (auto rule = rules::rule_of_line(line.file, line.line, line.text)) {
      current_.push_back(std::move(*rule));
    } else if (const auto off = rules::off_of_line(line.text)) {
      off_.insert(*off);
    }
  }
  for (const auto& [key, value] : trace.run_info()) {
    if (key != "expect_not") continue;
    for (std::size_t begin = 0; begin <= value.size();) {
      const std::size_t comma = std::min(value.find(',', begin), value.size());
      off_.insert(value.substr(begin, comma - begin));
      begin = comma + 1;
    }
  }
}

bool RuleBook::holds_for(const rules::Rule& rule, const trace::TraceFile& trace) const {
  const auto number = [](int value) { return value >= 0 ? std::optional<std::int64_t>(value) : std::nullopt; };
  return rules::holds(rule.ranks, number(trace.rank().value_or(-1))) &&
         rules::holds(rule.local_ranks, number(trace.header().local_rank)) &&
         rules::holds(rule.world_sizes, number(trace.header().world_size));
}

std::vector<Finding> RuleBook::judge(const trace::TraceFile& trace) {
  const std::vector<KeptTensor> tracks = kept_tensors_of(trace);
  const std::vector<KeptTensor> moving = moving_tensors_of(trace);
  if (moving.empty()) return {};
  saw_names_ = true;
  Judge judge(trace, tracks, moving);
  std::vector<Finding> findings = judge_expectations(trace, tracks, off_);
  for (const rules::Rule& rule : current_) {
    if (rule.about == rules::About::sync || rule.about == rules::About::transfer) continue;
    bool& applied = applied_[{{rule.file, rule.line}, rule.sentence}];
    if (!holds_for(rule, trace)) continue;
    std::vector<Finding> more = findings_of(trace, expectation_of(rule), judge.breaches(rule, applied));
    findings.insert(findings.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  return findings;
}

void RuleBook::judge_traffic(const trace::TraceFile& trace, std::vector<Finding>& findings) const {
  for (Finding& finding : findings) {
    if (!finding.traffic || finding.expectation) continue;
    const bool waits = finding.kind == Kind::implicit_sync;
    const std::uint64_t each = finding.traffic->bytes / std::max<std::uint64_t>(finding.count, 1);
    for (const rules::Rule& rule : current_) {
      const bool about_it = rule.about == (waits ? rules::About::sync : rules::About::transfer);
      if (!about_it || !holds_for(rule, trace) || (rule.phase && *rule.phase != finding.phase)) continue;
      if (!waits && each <= rule.over) continue;
      if (!happened_in_steps_of(rule, finding)) continue;
      finding.expectation = expectation_of(rule);
      finding.expectation->expected = rule.sentence;
      finding.expectation->found = waits ? "the host waits" : copied_text(finding);
      if (finding.severity == Severity::note) finding.severity = Severity::warning;
      break;
    }
  }
}

std::vector<Notice> RuleBook::unused() const {
  std::vector<Notice> notices;
  for (const auto& [rule, applied] : applied_) {
    if (applied || !saw_names_) continue;
    const auto& [place, sentence] = rule;
    notices.push_back(
        {place.first + ":" + std::to_string(place.second) + ": nothing has a name that '" + sentence + "' is about", 0,
         std::nullopt, 1});
  }
  return notices;
}

}  // namespace devsan::report
