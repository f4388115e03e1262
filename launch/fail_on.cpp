#include "launch/fail_on.h"

#include <algorithm>
#include <array>
#include <string>

#include "launch/messages.h"

namespace devsan::launch {
namespace {

using report::Kind;
using report::Severity;

constexpr std::array kAllKinds = {
#define DEVSAN_FINDING_KIND(enumerator, name, severity, meaning) Kind::enumerator,
#include "report/finding_kinds.def"
#undef DEVSAN_FINDING_KIND
};

std::optional<Kind> kind_named(std::string_view name) {
  const auto* found =
      std::find_if(kAllKinds.begin(), kAllKinds.end(), [&](Kind kind) { return report::name_of(kind) == name; });
  return found != kAllKinds.end() ? std::optional(*found) : std::nullopt;
}

std::string known_kinds() {
  std::string text = "any, error, warning";
  for (const Kind kind : kAllKinds) text.append(", ").append(report::name_of(kind));
  return text;
}

}  // namespace

FailOn FailOn::parse(std::string_view text) {
  FailOn wanted;
  const auto include = [&](Severity severity) {
    wanted.at_least_ = std::max(wanted.at_least_.value_or(severity), severity);
  };
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    const std::string_view name = text.substr(0, comma);
    if (name == "any") {
      include(Severity::note);
    } else if (name == "warning") {
      include(Severity::warning);
    } else if (name == "error") {
      include(Severity::error);
    } else if (const std::optional<Kind> kind = kind_named(name)) {
      wanted.kinds_.push_back(*kind);
    } else {
      throw UsageError("--fail-on: there is no kind '" + std::string(name) + "'; known are " + known_kinds());
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

}  // namespace devsan::launch
