#include "report/render/render_markdown.h"

#include <algorithm>

#include "report/model/operands.h"
#include "report/render/ending_lines.h"
#include "report/render/headline.h"
#include "report/render/markdown_text.h"
#include "report/render/terminal_parts.h"
#include "report/text/words.h"
#include "report/wording/apart_text.h"
#include "report/wording/attribute_text.h"
#include "report/wording/collective_text.h"
#include "report/wording/growth_text.h"
#include "report/wording/live_memory_text.h"
#include "report/wording/placement_text.h"
#include "report/wording/traffic_text.h"

namespace devsan::report {
namespace {

// An issue on GitHub takes 65,536 characters. Beyond this, findings are listed by their titles.
constexpr std::size_t kRoomForDetails = 48 * 1024;
constexpr std::size_t kRoomForTitles = 60 * 1024;
constexpr std::size_t kShownOperands = 12;
constexpr std::size_t kShownFrames = 20;
constexpr std::size_t kShownDamages = 5;

std::string place_span(const std::string& file, int line, const std::string& function) {
  std::string text = code_span(file + ":" + std::to_string(line));
  if (!function.empty()) text += " in " + code_span(function);
  return text;
}

std::string place_span(const Frame& frame) {
  return place_span(frame.file, frame.line, frame.function);
}

std::string stripped(const std::string& source) {
  const std::size_t begin = source.find_first_not_of(" \t");
  return begin == std::string::npos ? "" : source.substr(begin);
}

std::string title_line(const Finding& finding) {
  return std::string(name_of(finding.severity)) + " " + code_span(name_of(finding.kind)) + ": " +
         prose(headline(finding));
}

std::string facts_line(const Finding& finding) {
  std::string text;
  for (const std::string& part : circumstance_parts(finding)) text += (text.empty() ? "" : " · ") + prose(part);
  return text;
}

std::string operand_table(const Finding& finding) {
  if (finding.operands.empty()) return "";
  const auto any = [&](const auto& says) { return std::ranges::any_of(finding.operands, says); };
  const bool args = any([](const Operand& operand) { return !operand.arg.empty(); });
  const bool types = any([](const Operand& operand) { return operand.shape || !operand.dtype.empty(); });
  std::string text = "| |" + std::string(args ? " Operand |" : "") + " Written | Device |";
  text += types ? " Shape | Type |\n" : "\n";
  text += "| --- |" + std::string(args ? " --- |" : "") + " --- | --- |" + (types ? " --- | --- |\n" : "\n");
  for (std::size_t i = 0; i < std::min(finding.operands.size(), kShownOperands); ++i) {
    const Operand& operand = finding.operands[i];
    const std::string& name = operand.name.empty() ? operand.text : operand.name;
    text += operand.odd ? "| ▸ | " : "| | ";
    if (args) text += code_cell(operand.arg) + " | ";
    text += code_cell(name) + " | " + code_cell(operand.device) + " |";
    if (types) text += " " + code_cell(shape_text(operand)) + " | " + code_cell(operand.dtype) + " |";
    text += "\n";
  }
  if (finding.operands.size() > kShownOperands) {
    text += "\n… and " + counted(finding.operands.size() - kShownOperands, "more operand") + "\n";
  }
  return text + "\n";
}

std::string apart_part(const Finding& finding) {
  const std::vector<std::string> sentences = apart_sentences(finding);
  std::string text;
  for (const std::string& sentence : sentences) {
    const bool leads = &sentence == &sentences.back() && !finding.differs.empty();
    text += prose(sentence) + (leads ? ":\n\n" : ".\n");
  }
  for (const Difference& difference : finding.differs) {
    text += "- " + prose(difference.what) + ": " + code_span(difference.here) + " here, " +
            code_span(difference.there) + " there\n";
  }
  return text.empty() ? "" : text + "\n";
}

std::string details(const std::string& title, const std::string& body) {
  return body.empty() ? "" : "<details><summary>" + title + "</summary>\n\n" + body + "\n</details>\n\n";
}

std::string history(const Operand& operand) {
  std::string text;
  for (const LineageStep& step : operand.lineage) {
    text += "1. " + std::string(name_of(step.how)) + (step.device.empty() ? "" : " on " + code_span(step.device)) +
            " by " + code_span(step.op) + " at " + place_span(step.at);
    const std::string source = stripped(step.at.source);
    text += source.empty() ? "\n" : ": " + code_span(source) + "\n";
  }
  return text;
}

std::string stack_list(const std::vector<Frame>& frames) {
  std::string text;
  for (std::size_t i = 0; i < std::min(frames.size(), kShownFrames); ++i) text += "1. " + place_span(frames[i]) + "\n";
  if (frames.size() > kShownFrames) text += "\n… and " + counted(frames.size() - kShownFrames, "more frame") + "\n";
  return text;
}

std::string cause_part(const Finding& finding) {
  std::string text;
  if (const auto& cause = finding.root_cause) {
    text += "**" + std::string(cause_title(*cause)) + "** at " + place_span(cause->file, cause->line, cause->function) +
            "\n" + prose(cause->why) + "\n\n";
    if (!cause->source.empty()) text += code_block("python", stripped(cause->source)) + "\n";
  }
  if (const auto& fix = finding.fix) {
    text +=
        "**Change** at " + code_span(fix->file + ":" + std::to_string(fix->line)) + "\n" + prose(fix->text) + "\n\n";
    for (const FileDiff& patch : fix->patches) text += code_block("diff", patch.diff) + "\n";
  }
  std::string others;
  for (const RootCause& one : finding.alternatives) {
    others += "- " + place_span(one.file, one.line, one.function) + ": " + prose(one.why) + "\n";
  }
  return text + details("Other lines where the change could stand", others);
}

// What the terminal shows of the same, as it is there.
std::string as_in_terminal(const std::string& title, const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text.empty() ? "" : details(title, code_block("text", text));
}

std::string native_list(const Finding& finding) {
  std::string text;
  for (const NativeFrame& frame : finding.native_stack) {
    text += "1. " + code_span(frame.symbol.empty() ? "(no symbol)" : frame.symbol) + " in " + code_span(frame.module) +
            "\n";
  }
  return text;
}

std::string finding_part(const Finding& finding) {
  std::string text = "### " + title_line(finding) + "\n\n";
  if (finding.where) text += "At " + place_span(*finding.where) + "\n";
  text += facts_line(finding) + "\n";
  if (finding.silence) text += prose(silence_text(*finding.silence)) + "\n";
  if (finding.traffic) text += prose(traffic_cost(finding)) + "\n";
  text += "\n";
  if (finding.where && !finding.where->source.empty()) {
    text += code_block("python", stripped(finding.where->statement())) + "\n";
  }
  if (!finding.message.empty()) {
    text += std::string(finding.handled ? "PyTorch said, and the program caught it:" : "PyTorch said:") + "\n\n" +
            code_block("text", finding.message) + "\n";
  }
  text += operand_table(finding) + apart_part(finding) + cause_part(finding);
  for (const Operand& operand : finding.operands) {
    if (!operand.odd || operand.lineage.empty()) continue;
    text += details("History of " + html_code(spoken_name(operand)) + ", newest first", history(operand));
  }
  if (finding.forward) text += details("The forward operator whose backward this is", stack_list(*finding.forward));
  constexpr Style kPlain{false, 100};
  if (finding.collective) {
    text += as_in_terminal("What each rank did", collective_lines(*finding.collective, kPlain));
  }
  text += as_in_terminal("What is expected", expectation_lines(finding, kPlain));
  text += as_in_terminal("Who wrote the attribute", writer_lines(finding, kPlain));
  text += as_in_terminal("How it ended", ending_lines(finding, kPlain));
  text += as_in_terminal("What grows", growth_lines(finding, kPlain));
  text += as_in_terminal("What was live", live_memory_lines(finding, kPlain));
  text += details("Native stack, innermost first", native_list(finding));
  return text + details("Stack, innermost first", stack_list(finding.stack));
}

std::string head(const Report& report) {
  std::string text = "## devsan: " + verdict_text(report) + " in " + counted(report.run.processes.size(), "process");
  if (report.run.steps > 0) text += ", " + counted(report.run.steps, "step");
  text += "\n\n";
  if (report.run.first_failure) {
    text += "**" + prose(first_failure_text(*report.run.first_failure)) + "**\n";
    text += prose(then_waited_text(*report.run.first_failure)) + "\n\n";
  }
  for (const std::string& earlier : earlier_failure_texts(report.run.earlier_failures)) {
    text += "- " + prose(earlier) + "\n";
  }
  if (!report.run.earlier_failures.empty()) text += "\n";
  if (!report.run.command.empty()) text += code_block("sh", report.run.command) + "\n";
  std::string versions;
  for (const auto& [name, version] : report.run.versions) {
    versions += (versions.empty() ? "" : " · ") + prose(name) + " " + code_span(version);
  }
  return versions.empty() ? text : text + versions + "\n\n";
}

std::string damage_part(const Report& report) {
  std::string list;
  for (std::size_t i = 0; i < std::min(report.damage.size(), kShownDamages); ++i) {
    const Damage& damage = report.damage[i];
    list += "- " + code_span(damage.file) + ", offset " + std::to_string(damage.offset) + ": " + prose(damage.reason) +
            "\n";
  }
  if (report.damage.size() > kShownDamages) {
    list += "- … and " + counted(report.damage.size() - kShownDamages, "more damaged place") + "\n";
  }
  return details(counted(report.damage.size(), "part") + " of the traces could not be read", list);
}

}  // namespace

std::string render_markdown(const Report& report, const MarkdownShown& shown) {
  std::string text = head(report);
  std::string titles;
  std::size_t untold = 0;
  const auto tell = [&](const Finding& finding) {
    if (finding.severity == Severity::note && !shown.notes) return;
    const std::string part = finding_part(finding);
    if (titles.empty() && text.size() + part.size() <= kRoomForDetails) {
      text += part;
      return;
    }
    const std::string where = finding.where ? " at " + place_span(*finding.where) : "";
    const std::string title = "- " + title_line(finding) + where + "\n";
    if (text.size() + titles.size() + title.size() <= kRoomForTitles) {
      titles += title;
    } else {
      ++untold;
    }
  };
  for (const Finding& finding : report.findings) tell(finding);
  if (shown.suppressed) {
    for (const Finding& finding : report.suppressed) tell(finding);
  }
  if (!titles.empty()) text += "### Further findings\n\n" + titles + "\n";
  if (untold > 0) text += "… and " + counted(untold, "more finding") + "\n\n";
  return text + damage_part(report);
}

}  // namespace devsan::report
