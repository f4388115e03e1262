#include "report/wording/placement_text.h"

#include <algorithm>

#include "report/model/frames.h"
#include "report/text/lines.h"
#include "report/text/words.h"

namespace devsan::report {
namespace {

std::string whose_rule(const Expectation& expectation) {
  if (expectation.file.empty()) return "devsan's own expectation " + expectation.rule;
  const std::string place = std::string(base_name(expectation.file)) + ":" + std::to_string(expectation.line);
  return "The rule at " + place;
}

}  // namespace

std::string placement_headline(const Finding& finding) {
  const Expectation& expectation = *finding.expectation;
  const std::string name = "`" + (finding.operands.empty() ? expectation.rule : finding.operands.front().name) + "`";
  const std::string others =
      expectation.tensors > 1 ? " and " + counted(expectation.tensors - 1, "other tensor") + " are" : " is";
  return name + others + " on " + expectation.found + ", where " + expectation.expected + " is expected";
}

std::vector<std::string> expectation_lines(const Finding& finding, const Style& style) {
  Lines lines;
  if (!finding.expectation) return lines;
  const Expectation& expectation = *finding.expectation;
  append_wrapped(lines, whose_rule(expectation), 2, style, Paint::strong);
  append_wrapped(lines, expectation.sentence, 4, style);
  if (expectation.name_differs() && !expectation.file.empty())
    append_wrapped(lines, expectation.rule, 4, style, Paint::faint);
  for (std::size_t k = 1; k < expectation.names.size(); ++k) {
    append_wrapped(lines, "also " + expectation.names[k], 4, style, Paint::faint);
  }
  const std::size_t shown = std::max<std::size_t>(expectation.names.size(), 1);
  if (expectation.tensors > shown) {
    append_wrapped(lines, "and " + counted(expectation.tensors - shown, "more tensor"), 4, style, Paint::faint);
  }
  return lines;
}

std::string copied_text(const Finding& finding) {
  const std::uint64_t each = finding.traffic->bytes / std::max<std::uint64_t>(finding.count, 1);
  return bytes_text(each) + " are copied at a time";
}

void tell_cause(Finding& finding) {
  if (!finding.where || !finding.expectation) return;
  const Expectation& expectation = *finding.expectation;
  const std::vector<LineageStep>& lineage = finding.operands.front().lineage;
  const bool moved = !lineage.empty() && lineage.front().how == trace::How::moved;
  RootCause cause;
  cause.file = finding.where->file;
  cause.line = finding.where->line;
  cause.function = finding.where->function;
  cause.source = finding.where->source;
  cause.operand = finding.operands.front().name;
  cause.why = std::string("This line ") + (moved ? "put" : "made") + " `" + cause.operand + "` on " +
              expectation.found + "; " + expectation.expected + " is expected.";
  finding.root_cause = cause;
  const std::string rule = expectation.file.empty()
                               ? "switch `" + expectation.rule + "` off if this is meant (expect_not)"
                               : "change the rule at " + expectation.file + ":" + std::to_string(expectation.line);
  // Other ranks run the same line.
  const std::string place = expectation.expected == finding.own_device ? "the rank's own GPU" : expectation.expected;
  finding.fix = Fix{cause.file, cause.line, "Put `" + cause.operand + "` on " + place + " here, or " + rule, {}};
}

}  // namespace devsan::report
