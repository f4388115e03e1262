#include "launch/fail_on.h"

#include <algorithm>
#include <string>

#include "doctor/near_miss.h"
#include "launch/messages.h"
#include "report/model/frames.h"

namespace devsan::launch {
namespace {

using report::Kind;
using report::Severity;

std::string about_unknown(std::string_view name) {
  const std::vector<std::string> known = FailOn::words();
  std::string text = "--fail-on: unknown kind '" + std::string(name) + "'";
  if (const std::string guess = doctor::did_you_mean(name, known); !guess.empty()) return text + guess;
  text += "; known kinds:";
  for (const std::string& word : known) text.append(word == known.front() ? " " : ", ").append(word);
  return text;
}

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

}  // namespace

std::vector<std::string> FailOn::words() {
  std::vector<std::string> known = {"any", "error", "warning"};
  for (const Kind kind : trace::kFindingKinds) known.emplace_back(report::name_of(kind));
  return known;
}

FailOn FailOn::parse(std::string_view text) {
  FailOn wanted;
  const auto include = [&](Severity severity) {
    wanted.at_least_ = std::max(wanted.at_least_.value_or(severity), severity);
  };
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    const std::string_view name = without_blanks(text.substr(0, comma));
    if (name == "any") {
      include(Severity::note);
    } else if (name == "warning") {
      include(Severity::warning);
    } else if (name == "error") {
      include(Severity::error);
    } else if (const std::optional<Kind> kind = trace::kind_named(name)) {
      wanted.kinds_.push_back(*kind);
    } else {
      throw UsageError(about_unknown(name));
    }
    more = comma != std::string_view::npos;
    if (more) text.remove_prefix(comma + 1);
  }
  return wanted;
}

bool FailOn::matches(const report::Finding& finding) const {
  if (finding.handled) return false;
  // Severities are declared from the worst on.
  static_assert(Severity::error < Severity::warning && Severity::warning < Severity::note);
  if (at_least_ && finding.severity <= *at_least_) return true;
  return std::find(kinds_.begin(), kinds_.end(), finding.kind) != kinds_.end();
}

std::string FailOn::matches_text(const report::Report& report) const {
  const auto is_one = [this](const report::Finding& finding) { return matches(finding); };
  const auto first = std::ranges::find_if(report.findings, is_one);
  if (first == report.findings.end()) return {};
  const auto others = std::ranges::count_if(first + 1, report.findings.end(), is_one);
  std::string text(report::name_of(first->kind));
  if (first->where) text += " at " + report::short_place(*first->where);
  return others == 0 ? text : text + ", and " + std::to_string(others) + " more";
}

}  // namespace devsan::launch
