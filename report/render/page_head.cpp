#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "report/render/headline.h"
#include "report/render/page_data.h"
#include "report/render/render_json_parts.h"
#include "report/render/source_excerpt.h"
#include "report/wording/growth_text.h"
#include "report/wording/live_memory_text.h"
#include "report/wording/traffic_text.h"

namespace devsan::report {
namespace {

constexpr int kAround = 8;  // lines before and after a place

// Line numbers by file.
using WantedLines = std::map<std::string, std::set<int>>;

void want_line(WantedLines& wanted, const std::string& file, int line) {
  if (line > 0) wanted[file].insert(line);
}

void want_places(WantedLines& wanted, const Finding& finding) {
  if (finding.where) want_line(wanted, finding.where->file, finding.where->line);
  if (finding.root_cause) want_line(wanted, finding.root_cause->file, finding.root_cause->line);
  if (finding.fix) want_line(wanted, finding.fix->file, finding.fix->line);
  for (const RootCause& cause : finding.alternatives) want_line(wanted, cause.file, cause.line);
}

std::vector<std::string_view> text_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

Json window_json(const std::vector<std::string_view>& lines, int first, int last) {
  Json window = {{"first", first}, {"lines", Json::array()}};
  for (int line = first; line <= last; ++line) window["lines"].push_back(lines[static_cast<std::size_t>(line) - 1]);
  return window;
}

// Lines around the wanted ones; windows that touch are one.
Json windows_json(const std::string& text, const std::set<int>& wanted) {
  const std::vector<std::string_view> lines = text_lines(text);
  const int count = static_cast<int>(lines.size());
  Json windows = Json::array();
  int first = 0;
  int last = 0;
  for (const int line : wanted) {
    if (line > count) break;
    if (first != 0 && line - kAround > last + 1) {
      windows.push_back(window_json(lines, first, last));
      first = 0;
    }
    if (first == 0) first = std::max(1, line - kAround);
    last = std::min(count, line + kAround);
  }
  if (first != 0) windows.push_back(window_json(lines, first, last));
  return windows;
}

Json sources_json(const Report& report, const Sources& sources) {
  WantedLines wanted;
  for (const auto* findings : {&report.findings, &report.suppressed}) {
    for (const Finding& finding : *findings) want_places(wanted, finding);
  }
  Json json = Json::object();
  for (const auto& [file, lines] : wanted) {
    const auto source = sources.find(file);
    if (source != sources.end() && source->second.text) json[file] = windows_json(*source->second.text, lines);
  }
  return json;
}

Json marks_json(const Finding& finding) {
  Json json = Json::array();
  if (!finding.where) return json;
  for (const Mark& mark : marks_for(*finding.where, finding.operands)) {
    json.push_back({{"begin", mark.begin}, {"end", mark.end}, {"odd", mark.sign == '^'}, {"label", mark.label}});
  }
  return json;
}

// Beside the headline, what the terminal says of a finding in sentences, so that both say the same.
Json sentences_json(const Finding& finding) {
  Json json = Json::object();
  const auto add = [&](const char* name, const std::string& text) {
    if (!text.empty()) json[name] = text;
  };
  if (finding.silence) add("silence", silence_text(*finding.silence));
  if (finding.traffic) add("cost", traffic_cost(finding));
  if (finding.live) add("room", room_text(*finding.live));
  if (finding.growth) {
    add("what_grows", what_grows_text(*finding.growth));
    add("outlook", growth_outlook(*finding.growth));
  }
  return json;
}

Json beside_json(const Report& report, const Sources& sources) {
  Json headlines = Json::object();
  Json marks = Json::object();
  Json sentences = Json::object();
  for (const auto* findings : {&report.findings, &report.suppressed}) {
    for (const Finding& finding : *findings) {
      headlines[finding.id] = headline(finding);
      if (Json found = sentences_json(finding); !found.empty()) sentences[finding.id] = std::move(found);
      if (Json found = marks_json(finding); !found.empty()) marks[finding.id] = std::move(found);
    }
  }
  return {{"headlines", std::move(headlines)},
          {"sentences", std::move(sentences)},
          {"marks", std::move(marks)},
          {"sources", sources_json(report, sources)}};
}

}  // namespace

Json page_head(const Report& report, const Sources& sources) {
  return {{"report", report_json(report, Detail::page)}, {"beside", beside_json(report, sources)}};
}

}  // namespace devsan::report
