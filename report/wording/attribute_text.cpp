#include "report/wording/attribute_text.h"

#include "report/model/frames.h"
#include "report/text/lines.h"

namespace devsan::report {
namespace {

std::string attribute_of(const Overwriting& overwriting) {
  return overwriting.type + "." + overwriting.name;
}

std::string change_of(const Overwriting& overwriting) {
  return "`" + attribute_of(overwriting) + "` was " +
         (overwriting.writers.size() > 1 ? overwriting.writers.front().value : "something else") + ", and " +
         short_place(overwriting.writers.back().frame) + " wrote " + overwriting.writers.back().value + " over it";
}

}  // namespace

std::string overwriting_headline(const Finding& finding) {
  return change_of(*finding.overwriting);
}

std::vector<std::string> writer_lines(const Finding& finding, const Style& style) {
  Lines lines;
  if (!finding.overwriting) return lines;
  append_wrapped(lines, "Who wrote `" + attribute_of(*finding.overwriting) + "`", 2, style, Paint::strong);
  for (const Writer& writer : finding.overwriting->writers) {
    append_wrapped(lines, writer.when + "  " + short_place(writer.frame) + "  " + writer.value, 4, style);
  }
  return lines;
}

void tell_overwriting(Finding& finding) {
  const Overwriting& overwriting = *finding.overwriting;
  const Frame& last = overwriting.writers.back().frame;
  const Frame& first = overwriting.writers.front().frame;
  RootCause cause;
  cause.file = last.file;
  cause.line = last.line;
  cause.function = last.function;
  cause.source = last.source;
  cause.operand = attribute_of(overwriting);
  cause.why = "This line writes `" + overwriting.name + "` of every module that it comes to; the class `" +
              overwriting.type + "` keeps something of its own there. Whatever reads it now gets " +
              overwriting.writers.back().value + ".";
  finding.root_cause = cause;
  finding.fix = Fix{first.file,
                    first.line,
                    "Give the attribute `" + overwriting.name + "` of `" + overwriting.type +
                        "` another name, which no library writes",
                    {}};
}

void tell_link(Finding& finding) {
  if (!finding.root_cause) return;
  finding.root_cause->why +=
      " " + change_of(*finding.overwriting) + ": if the device is taken from there, that is why.";
}

}  // namespace devsan::report
