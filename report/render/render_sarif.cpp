#include "report/render/render_sarif.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "report/model/operands.h"
#include "report/render/headline.h"
#include "report/render/render_json_parts.h"
#include "report/render/sarif_places.h"
#include "report/text/words.h"
#include "report/wording/apart_text.h"
#include "report/wording/kind_help.h"

namespace devsan::report {
namespace {

constexpr const char* kSarifSchema = "https://json.schemastore.org/sarif-2.1.0.json";
constexpr std::size_t kRelated = 24;

constexpr std::array kAllKinds = {
#define DEVSAN_FINDING_KIND(enumerator, name, severity, meaning) Kind::enumerator,
#include "trace/finding_kinds.def"
#undef DEVSAN_FINDING_KIND
};

Json message(std::string_view text) {
  return {{"text", text}};
}

// "device-mismatch" -> "DeviceMismatch"
std::string rule_name(Kind kind) {
  std::string name;
  bool first = true;
  for (const char c : name_of(kind)) {
    if (c != '-') name += first && c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    first = c == '-';
  }
  return name;
}

Json rules_json() {
  Json rules = Json::array();
  for (const Kind kind : kAllKinds) {
    rules.push_back({{"id", name_of(kind)},
                     {"name", rule_name(kind)},
                     {"shortDescription", message(meaning_of(kind))},
                     {"help", message(help_of(kind))},
                     {"defaultConfiguration", {{"level", name_of(default_severity(kind))}}}});
  }
  return rules;
}

class ResultWriter {
 public:
  ResultWriter(const SarifPlaces& places, const Finding& finding) : places_(places), finding_(finding) {}

  Json write() {
    Json result = {{"ruleId", name_of(finding_.kind)}, {"level", name_of(finding_.severity)}};
    if (const auto kind = std::ranges::find(kAllKinds, finding_.kind); kind != kAllKinds.end()) {
      result["ruleIndex"] = kind - kAllKinds.begin();
    }
    result["message"] = message(told());
    result["locations"] = Json::array();
    if (finding_.where) result["locations"].push_back(places_.location(*finding_.where));
    add_related(result);
    if (finding_.stack.size() > 1) result["stacks"] = stacks();
    if (Json flows = code_flows(); !flows.empty()) result["codeFlows"] = std::move(flows);
    if (Json fixes = fixes_json(); !fixes.empty()) result["fixes"] = std::move(fixes);
    result["occurrenceCount"] = std::max<std::uint64_t>(1, finding_.count);
    result["partialFingerprints"] = {{"devsan/v1", finding_.id}};
    result["suppressions"] = suppressions();
    result["properties"] = properties();
    return result;
  }

 private:
  std::string told() const {
    std::string text = headline(finding_) + ".";
    if (!finding_.ranks.empty()) {
      text += (finding_.ranks.size() == 1 ? " On rank " : " On ranks ") + ranges_of(finding_.ranks) + ".";
    }
    for (const std::string& sentence : apart_sentences(finding_)) text += " " + sentence + ".";
    for (const Difference& one : finding_.differs) text += " What differs: " + difference_text(one) + ".";
    // The headline of a wrong placement says so.
    if (const Operand* odd = first_odd(finding_.operands); odd != nullptr && finding_.kind != Kind::wrong_placement) {
      text += " `" + spoken_name(*odd) + "` is on " + odd->device + ".";
    }
    if (finding_.last_moments && !finding_.last_moments->ending.hint.empty()) {
      text += " " + finding_.last_moments->ending.hint;
    }
    if (finding_.root_cause) text += " " + finding_.root_cause->why;
    if (finding_.fix) text += " Change: " + finding_.fix->text;
    if (!finding_.message.empty()) {
      text += std::string(finding_.handled ? "\nPyTorch said, and the program caught it: " : "\nPyTorch said: ") +
              finding_.message;
    }
    return text;
  }

  void add_related(Json& result) const {
    Json related = Json::array();
    const auto add = [&](Json location, const std::string& text) {
      if (related.size() == kRelated || location.empty()) return;
      location["id"] = related.size() + 1;
      location["message"] = message(text);
      related.push_back(std::move(location));
    };
    if (const auto& cause = finding_.root_cause) {
      add(places_.location(cause->file, cause->line, cause->function),
          std::string(cause_title(*cause)) + ": " + cause->why);
    }
    for (const RootCause& one : finding_.alternatives) {
      add(places_.location(one.file, one.line, one.function), "Another line for the change: " + one.why);
    }
    if (finding_.forward && !finding_.forward->empty()) {
      add(places_.location(finding_.forward->front()), "The forward operator whose backward this is");
    }
    for (const Operand& operand : finding_.operands) {
      for (const LineageStep& step : operand.lineage) add(places_.location(step.at), step_text(operand, step));
    }
    if (!related.empty()) result["relatedLocations"] = std::move(related);
  }

  static std::string step_text(const Operand& operand, const LineageStep& step) {
    std::string text = "`" + spoken_name(operand) + "`: " + std::string(name_of(step.how));
    if (!step.device.empty()) text += " on " + step.device;
    return step.op.empty() ? text : text + " by " + step.op;
  }

  Json stacks() const {
    Json frames = Json::array();
    for (const Frame& frame : finding_.stack) frames.push_back({{"location", places_.location(frame)}});
    return Json::array({{{"message", message("Innermost first")}, {"frames", std::move(frames)}}});
  }

  // From where the odd operand came to be to where it met the others.
  Json code_flows() const {
    Json flows = Json::array();
    for (const Operand& operand : finding_.operands) {
      if (!operand.odd || operand.lineage.empty() || !finding_.where) continue;
      Json steps = Json::array();
      for (auto step = operand.lineage.rbegin(); step != operand.lineage.rend(); ++step) {
        Json location = places_.location(step->at);
        location["message"] = message(step_text(operand, *step));
        steps.push_back(
            {{"location", std::move(location)},
             {"importance",
              step == operand.lineage.rbegin() || step->how == trace::How::moved ? "essential" : "important"}});
      }
      Json end = places_.location(*finding_.where);
      end["message"] = message(headline(finding_));
      steps.push_back({{"location", std::move(end)}, {"importance", "essential"}});
      flows.push_back({{"message", message("History of `" + spoken_name(operand) + "`")},
                       {"threadFlows", Json::array({{{"locations", std::move(steps)}}})}});
    }
    return flows;
  }

  Json fixes_json() const {
    Json changes = Json::array();
    if (!finding_.fix) return changes;
    for (const FileDiff& patch : finding_.fix->patches) {
      Json replacements = sarif_replacements(patch.diff);
      if (replacements.empty()) continue;
      changes.push_back(
          {{"artifactLocation", places_.artifact(patch.file)}, {"replacements", std::move(replacements)}});
    }
    if (changes.empty()) return changes;
    return Json::array({{{"description", message(finding_.fix->text)}, {"artifactChanges", std::move(changes)}}});
  }

  // An empty list says that the result is not suppressed.
  Json suppressions() const {
    if (!finding_.silence) return Json::array();
    const Silence& silence = *finding_.silence;
    const bool in_file = silence.by == Silence::By::suppression;
    Json one = {
        {"kind", in_file ? "external" : "inSource"}, {"status", "accepted"}, {"justification", silence_text(silence)}};
    if (in_file && silence.line > 0) {
      one["location"] = {
          {"physicalLocation",
           {{"artifactLocation", places_.artifact(silence.file)}, {"region", {{"startLine", silence.line}}}}}};
    }
    return Json::array({std::move(one)});
  }

  Json properties() const {
    Json json = {{"op", text_or_null(finding_.op)}, {"step", finding_.step}, {"phase", name_of(finding_.phase)}};
    json["ranks"] = finding_.ranks;
    json["otherRanks"] = finding_.other_ranks;
    json["differs"] = Json::array();
    for (const Difference& one : finding_.differs) json["differs"].push_back(difference_text(one));
    json["raised"] = finding_.raised;
    json["handled"] = finding_.handled;
    if (finding_.root_cause) json["mechanism"] = text_or_null(finding_.root_cause->mechanism);
    return json;
  }

  const SarifPlaces& places_;
  const Finding& finding_;
};

Json notifications_json(const Report& report) {
  Json notifications = Json::array();
  for (const Damage& damage : report.damage) {
    notifications.push_back({{"level", "warning"}, {"message", message(damage.file + ": " + damage.reason)}});
  }
  for (const Notice& notice : report.run.notices) {
    notifications.push_back({{"level", "note"}, {"message", message(notice.text)}});
  }
  return notifications;
}

Json invocation_json(const Report& report) {
  Json invocation = {{"executionSuccessful", true}};
  if (!report.run.command.empty()) invocation["commandLine"] = report.run.command;
  if (report.run.start_ns > 0) invocation["startTimeUtc"] = iso_time(report.run.start_ns);
  if (report.run.last_ns > 0) invocation["endTimeUtc"] = iso_time(report.run.last_ns);
  if (!report.run.hosts.empty()) invocation["machine"] = report.run.hosts.front();
  if (Json told = notifications_json(report); !told.empty()) invocation["toolExecutionNotifications"] = std::move(told);
  return invocation;
}

std::string base_of(const Report& report, const std::filesystem::path& wanted) {
  const std::string base = wanted.lexically_normal().string();
  return !base.empty() && has_file_below(report, base) ? base : common_directory(report);
}

}  // namespace

std::string render_sarif(const Report& report, const std::filesystem::path& base) {
  const SarifPlaces places(base_of(report, base));
  Json driver = {{"name", "devsan"}};
  if (const auto version = report.run.versions.find("devsan"); version != report.run.versions.end()) {
    driver["version"] = version->second;
  }
  driver["rules"] = rules_json();
  Json run = {{"tool", {{"driver", std::move(driver)}}}, {"invocations", Json::array({invocation_json(report)})}};
  if (!report.run.id.empty()) run["automationDetails"] = {{"id", "devsan/" + report.run.id}};
  if (Json bases = places.bases(); !bases.is_null()) run["originalUriBaseIds"] = std::move(bases);
  run["columnKind"] = "unicodeCodePoints";
  run["results"] = Json::array();
  for (const std::vector<Finding>* findings : {&report.findings, &report.suppressed}) {
    for (const Finding& finding : *findings) run["results"].push_back(ResultWriter(places, finding).write());
  }
  const Json log = {{"$schema", kSarifSchema}, {"version", "2.1.0"}, {"runs", Json::array({std::move(run)})}};
  return log.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace devsan::report
