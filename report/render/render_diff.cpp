#include "report/render/render_diff.h"

#include <nlohmann/json.hpp>

#include "report/model/frames.h"
#include "report/render/headline.h"
#include "report/render/render_json_parts.h"
#include "report/render/summary.h"
#include "report/text/text_layout.h"

namespace devsan::report {
namespace {

std::string same_line_text(const Comparison::Pair& pair, const Style& style) {
  const Finding& after = *pair.after;
  std::string place;
  if (after.where) {
    place = " at " + short_place(*after.where);
    const bool moved = pair.before->where && pair.before->where->line != after.where->line;
    if (moved) place += " (was " + std::to_string(pair.before->where->line) + ")";
  }
  const std::string label = std::string(name_of(after.severity)) + "[" + std::string(name_of(after.kind)) + "] ";
  const std::size_t taken = 2 + columns_of(label) + columns_of(place);
  const std::size_t room = style.width > taken + 12 ? style.width - taken : 12;
  return "  " +
         painted(style, Paint::faint, cut_middle(label + cut_right(headline(after), room) + place, style.width - 2));
}

std::string verdict_of(const Comparison& comparison, const Style& style) {
  const auto part = [&](Paint paint, std::size_t count, const char* what) {
    const std::string text = std::to_string(count) + " " + what;
    return count == 0 ? text : painted(style, paint, text);
  };
  std::string text = painted(style, Paint::strong, "devsan: ") + part(Paint::error, comparison.fresh.size(), "new");
  if (!comparison.worse.empty()) text += ", " + part(Paint::error, comparison.worse.size(), "worse");
  text += ", " + part(Paint::good, comparison.gone.size(), "gone");
  return text + ", " + part(Paint::plain, comparison.same.size(), "the same") + "\n";
}

void append_findings(std::string& text, std::string_view title, const std::vector<const Finding*>& findings,
                     const Style& style) {
  if (findings.empty()) return;
  text += painted(style, Paint::strong, title) + "\n";
  for (const Finding* finding : findings) {
    for (const std::string& line : finding_in_short(*finding, style)) text += line + "\n";
    text += "\n";
  }
}

Json run_in_short(const Run& run) {
  return {{"id", text_or_null(run.id)}, {"command", text_or_null(run.command)}};
}

Json findings_list(const std::vector<const Finding*>& findings) {
  Json json = Json::array();
  for (const Finding* finding : findings) json.push_back(finding_json(*finding));
  return json;
}

Json pairs_list(const std::vector<Comparison::Pair>& pairs) {
  Json json = Json::array();
  for (const Comparison::Pair& pair : pairs) {
    json.push_back({{"before", finding_json(*pair.before)}, {"after", finding_json(*pair.after)}});
  }
  return json;
}

}  // namespace

std::string render_diff(const Comparison& comparison, const Style& style) {
  std::string text;
  std::vector<const Finding*> worse;
  for (const Comparison::Pair& pair : comparison.worse) worse.push_back(pair.after);
  append_findings(text, "New", comparison.fresh, style);
  append_findings(text, "Worse than before", worse, style);
  append_findings(text, "Gone", comparison.gone, style);
  if (!comparison.same.empty()) {
    text += painted(style, Paint::strong, "The same") + "\n";
    for (const Comparison::Pair& pair : comparison.same) text += same_line_text(pair, style) + "\n";
    text += "\n";
  }
  return text + verdict_of(comparison, style);
}

std::string render_diff_json(const Comparison& comparison, const Run& before, const Run& after) {
  const Json json = {{"schema", kDiffSchema},
                     {"before", run_in_short(before)},
                     {"after", run_in_short(after)},
                     {"new", findings_list(comparison.fresh)},
                     {"worse", pairs_list(comparison.worse)},
                     {"gone", findings_list(comparison.gone)},
                     {"same", pairs_list(comparison.same)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace devsan::report
