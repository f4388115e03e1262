#include "launch/doctor_terminal.h"

#include "report/text/lines.h"
#include "report/text/text_layout.h"
#include "report/text/words.h"

namespace devsan::launch {
namespace {

using doctor::Level;
using report::Lines;
using report::Paint;
using report::Style;

constexpr std::size_t kLabelColumns = 9;  // "warning  "

Paint paint_of(Level level) {
  switch (level) {
    case Level::ok:
      return Paint::good;
    case Level::warning:
      return Paint::warning;
    case Level::error:
      return Paint::error;
  }
  return Paint::plain;
}

// URLs and paths, which the user is to open, stay whole.
void append_paragraph(Lines& lines, std::string_view text, std::size_t indent, const Style& style,
                      Paint paint = Paint::plain) {
  report::append_wrapped(lines, text, indent, style, paint, report::Places::whole);
}

// A paragraph with a word in the margin before its first line.
void append_labelled(Lines& lines, std::string_view label, Paint label_paint, std::string_view text, const Style& style,
                     Paint paint = Paint::plain) {
  Lines paragraph;
  append_paragraph(paragraph, text, kLabelColumns, style, paint);
  if (paragraph.empty()) return;
  const std::string margin = report::pad_right(std::string(label), kLabelColumns);
  paragraph.front().replace(0, kLabelColumns, report::painted(style, label_paint, margin));
  lines.insert(lines.end(), paragraph.begin(), paragraph.end());
}

void append_line(Lines& lines, const doctor::Line& line, const Style& style) {
  append_labelled(lines, doctor::name_of(line.level), paint_of(line.level), line.found, style,
                  line.level == Level::ok ? Paint::plain : Paint::strong);
  for (const std::string& step : line.steps) append_paragraph(lines, step, kLabelColumns + 2, style, Paint::faint);
  if (!line.means.empty() && line.level != Level::ok) append_paragraph(lines, line.means, kLabelColumns, style);
  if (!line.cure.empty()) append_labelled(lines, "  do", Paint::note, line.cure, style);
  if (!line.source.empty() && line.level != Level::ok)
    append_labelled(lines, "  see", Paint::faint, line.source, style, Paint::place);
}

std::string ending(const doctor::Diagnosis& diagnosis) {
  const std::size_t errors = diagnosis.count(Level::error);
  const std::size_t warnings = diagnosis.count(Level::warning);
  if (errors + warnings == 0) return "Nothing wrong was found.";
  std::string text;
  if (errors > 0) text = report::counted(errors, "error");
  if (warnings > 0) text += (text.empty() ? "" : ", ") + report::counted(warnings, "warning");
  return text + ", " + std::to_string(diagnosis.count(Level::ok)) + " ok.";
}

}  // namespace

std::string render_diagnosis(const doctor::Diagnosis& diagnosis, const Style& style) {
  Lines lines;
  for (const doctor::GroupInfo& group : doctor::all_groups()) {
    bool begun = false;
    for (const doctor::Line& line : diagnosis.lines()) {
      if (doctor::info_of(line.check).group != group.group) continue;
      if (!begun) {
        if (!lines.empty()) lines.emplace_back();
        lines.push_back(report::painted(style, Paint::strong, group.heading));
      }
      begun = true;
      append_line(lines, line, style);
    }
  }
  lines.emplace_back();
  const bool errors = diagnosis.count(Level::error) > 0;
  const bool warnings = diagnosis.count(Level::warning) > 0;
  const Paint paint = errors ? Paint::error : (warnings ? Paint::warning : Paint::good);
  lines.push_back(report::painted(style, paint, ending(diagnosis)));
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

}  // namespace devsan::launch
