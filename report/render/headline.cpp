#include "report/render/headline.h"

#include <algorithm>

#include "report/findings/build_endings.h"
#include "report/model/operands.h"
#include "report/text/words.h"
#include "report/wording/attribute_text.h"
#include "report/wording/collective_text.h"
#include "report/wording/growth_text.h"
#include "report/wording/host_access_text.h"
#include "report/wording/live_memory_text.h"
#include "report/wording/placement_text.h"
#include "report/wording/traffic_text.h"

namespace devsan::report {

namespace {

// Of kinds that are told by more than an operator and its operands; empty for the others.
std::string own_headline(const Finding& finding) {
  if (finding.traffic) return traffic_headline(finding);
  if (finding.kind == Kind::wrong_placement && finding.expectation) return placement_headline(finding);
  if (finding.kind == Kind::attribute_overwritten && finding.overwriting) return overwriting_headline(finding);
  if (finding.last_moments) return ending_text(finding);
  if (finding.growth) return growth_headline(finding);
  if (finding.collective) return collective_headline(finding);
  if (finding.live) return live_memory_headline(finding);
  return finding.kind == Kind::host_dereference ? host_access_headline(finding) : std::string();
}

}  // namespace

std::string headline(const Finding& finding) {
  if (std::string own = own_headline(finding); !own.empty()) return own;
  if (finding.op.empty()) return std::string(meaning_of(finding.kind));
  const auto devices = devices_of(finding.operands);
  if (devices.size() < 2) return finding.op + " met operands on different devices";
  std::string text = finding.op + " met operands on ";
  for (std::size_t i = 0; i < devices.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == devices.size() ? " and " : ", ") + devices[i];
  }
  return text;
}

std::string short_headline(const Finding& finding) {
  if (std::string own = own_headline(finding); !own.empty()) return own;
  if (!finding.op.empty()) return finding.op;
  const std::string message = finding.message.substr(0, finding.message.find('\n'));
  return message.empty() ? std::string(meaning_of(finding.kind)) : message;
}

std::string verdict_text(const Report& report) {
  const auto count = [&](Severity severity) {
    return static_cast<std::uint64_t>(std::ranges::count(report.findings, severity, &Finding::severity));
  };
  const std::uint64_t errors = count(Severity::error);
  const std::uint64_t warnings = count(Severity::warning);
  std::string text;
  if (errors > 0) text = counted(errors, "error");
  if (warnings > 0) text += (text.empty() ? "" : " and ") + counted(warnings, "warning");
  return text.empty() ? "no finding" : text;
}

std::string_view cause_title(const RootCause& cause) {
  if (!cause.confidence) return "Cause";
  return *cause.confidence == Confidence::likely ? "Likely cause" : "Possible cause";
}

std::string silence_text(const Silence& silence) {
  switch (silence.by) {
    case Silence::By::allowed:
      return "the program allows it (devsan.allow)";
    case Silence::By::expected:
      return "the program expects it (devsan.expect)";
    case Silence::By::suppression:
      break;
  }
  const std::string place = "suppressed by " + silence.file + ":" + std::to_string(silence.line);
  return silence.reason.empty() ? place : place + ": " + silence.reason;
}

}  // namespace devsan::report
