// Installed packages against the releases with known device bugs.
#include <algorithm>

#include "doctor/bugs/known_bugs.h"
#include "doctor/checks/checks.h"
#include "doctor/config/deepspeed.h"
#include "doctor/text.h"

namespace devsan::doctor {
namespace {

enum class Answer { no, yes, unknown };

Answer answer(bool holds) {
  return holds ? Answer::yes : Answer::no;
}

Answer of_device(const Offload& offload, std::string_view wanted) {
  if (offload.device == "auto") return Answer::unknown;
  return answer(wanted == "any" ? offload.on() : offload.device == wanted);
}

// "1-2" and "3" against a stage.
Answer of_stage(const std::optional<int>& stage, std::string_view wanted) {
  if (!stage) return Answer::unknown;
  return answer(*stage >= wanted.front() - '0' && *stage <= wanted.back() - '0');
}

Answer holds(const Condition& condition, const Json& config, const DeepSpeedView& view) {
  const std::size_t colon = condition.find(':');
  const std::string key = condition.substr(0, colon);
  const std::string_view wanted = std::string_view(condition).substr(colon + 1);
  if (key == "stage") return of_stage(view.stage, wanted);
  if (key == "offload_optimizer") return of_device(view.optimizer, wanted);
  if (key == "offload_param") return of_device(view.param, wanted);
  if (key == "offload") {
    return answer(wanted == "any" ? view.offloads() : view.param.device == wanted || view.optimizer.device == wanted);
  }
  if (key == "bf16") return view.bf16 == Setting::automatic ? Answer::unknown : answer(view.bf16 == Setting::yes);
  const Json* value = find_value(config, "zero_optimization." + key);
  return is_auto(value) ? Answer::unknown : answer(is_true(value) == (wanted == "true"));
}

// Whether a config brings a bug about. Unknown without one, and where the bug needs what no config tells.
Answer applies(const KnownBug& bug, const std::optional<Json>& config) {
  if (bug.needs.empty()) return Answer::yes;
  if (bug.when.empty() || !config) return Answer::unknown;
  const DeepSpeedView view = view_of(*config);
  Answer all = bug.enough ? Answer::yes : Answer::unknown;
  for (const Condition& condition : bug.when) {
    const Answer one = holds(condition, *config, view);
    if (one == Answer::no) return Answer::no;
    if (one == Answer::unknown) all = Answer::unknown;
  }
  return all;
}

void tell_bug(const KnownBug& bug, const std::string& version, Answer applying, Diagnosis& diagnosis) {
  const bool sure = applying == Answer::yes && bug.certain;
  std::string found = bug.library + " " + version + " has a known device bug (" + bug.affected + ")";
  found += bug.needs.empty()
               ? "."
               : (applying == Answer::yes ? ", which this config brings about: " : " with: ") + bug.needs + ".";
  diagnosis.add({Check::known_bugs, sure ? Level::error : Level::warning, found, bug.symptom, bug.cure, bug.source});
}

}  // namespace

void check_known_bugs(const Facts& facts, Diagnosis& diagnosis) {
  std::optional<Json> config;
  if (const auto settings = facts.deepspeed_settings()) config = settings->value;
  std::size_t looked_at = 0;
  std::size_t told = 0;
  for (const KnownBug& bug : known_bugs()) {
    const std::optional<Version> version = parse_version(facts.packages.version(bug.library));
    if (!version) continue;
    ++looked_at;
    if (!bug.range.contains(*version)) continue;
    const Answer applying = applies(bug, config);
    if (applying == Answer::no) continue;
    ++told;
    tell_bug(bug, facts.packages.version(bug.library), applying, diagnosis);
  }
  if (looked_at > 0 && told == 0) {
    diagnosis.ok(
        Check::known_bugs,
        "None of " + counted(looked_at, "known device bug") + " of these packages is in the installed releases.", "");
  }
}

}  // namespace devsan::doctor
