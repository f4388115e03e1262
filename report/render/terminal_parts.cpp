#include "report/render/terminal_parts.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "report/model/operands.h"
#include "report/model/statement_lines.h"
#include "report/render/headline.h"
#include "report/render/source_excerpt.h"
#include "report/text/lines.h"
#include "report/text/text_layout.h"
#include "report/text/words.h"
#include "report/wording/apart_text.h"

namespace devsan::report {
namespace {

const std::string kDot = " · ";
constexpr std::size_t kMaxOperandRows = 8;

struct OperandRow {
  const Operand* operand;
  std::string arg, name, device, shape, dtype;
};

OperandRow row_of(const Operand& operand) {
  OperandRow row{&operand, operand.arg, operand.name, operand.device, shape_text(operand), operand.dtype};
  if (operand.generator) row.shape = "generator";
  if (operand.device_argument) row.shape = "device argument";
  return row;
}

// The odd ones, and as many of the others as there is room for, in their order.
std::vector<OperandRow> rows_of(const std::vector<Operand>& operands) {
  std::vector<OperandRow> rows;
  auto room = static_cast<std::ptrdiff_t>(kMaxOperandRows) - std::ranges::count_if(operands, &Operand::odd);
  std::size_t odd = 0;
  for (const Operand& operand : operands) {
    if (operand.odd ? odd++ < kMaxOperandRows : room-- > 0) rows.push_back(row_of(operand));
  }
  return rows;
}

std::size_t widest(const std::vector<OperandRow>& rows, std::string OperandRow::*cell, std::size_t least) {
  std::size_t columns = least;
  for (const OperandRow& row : rows) columns = std::max(columns, columns_of(row.*cell));
  return columns;
}

// The same within bounds; 0 of a column that is left out, because no row has anything there.
std::size_t width_if_any(const std::vector<OperandRow>& rows, std::string OperandRow::*cell, std::size_t least,
                         std::size_t most) {
  const bool any = std::ranges::any_of(rows, [&](const OperandRow& row) { return !(row.*cell).empty(); });
  return any ? std::min(widest(rows, cell, least), most) : 0;
}

std::vector<const Frame*> frames_of(const Finding& finding) {
  std::vector<const Frame*> frames;
  for (const Operand& operand : finding.operands) {
    for (const LineageStep& step : operand.lineage) frames.push_back(&step.at);
  }
  if (finding.traffic && finding.traffic->copy) frames.push_back(&*finding.traffic->copy);
  for (const Frame& frame : finding.stack) frames.push_back(&frame);
  return frames;
}

// Also a line that a statement of the finding goes on to.
std::optional<Frame> frame_at(const Finding& finding, const std::string& file, int line) {
  const std::vector<const Frame*> frames = frames_of(finding);
  const auto fits = [&](const Frame* frame) { return frame->file == file && frame->line == line; };
  if (const auto found = std::ranges::find_if(frames, fits); found != frames.end()) return **found;
  for (const Frame* frame : frames) {
    if (frame->file != file) continue;
    if (auto later = later_line(*frame, line)) return later;
  }
  const auto& cause = finding.root_cause;
  if (!cause || cause->source.empty() || cause->file != file || cause->line != line) return std::nullopt;
  Frame frame;
  frame.file = file;
  frame.line = frame.end_line = line;
  frame.source = cause->source;
  return frame;
}

std::string place_text(const std::string& file, int line, std::size_t columns) {
  const std::string number = ":" + std::to_string(line);
  return cut_path(file, columns - std::min(columns / 2, number.size())) + number;
}

}  // namespace

Lines operand_lines(const Finding& finding, const Style& style) {
  if (finding.operands.empty()) return {};
  const auto rows = rows_of(finding.operands);
  const std::size_t arg = width_if_any(rows, &OperandRow::arg, 3, 16);
  const std::size_t device = std::min<std::size_t>(widest(rows, &OperandRow::device, 6), 16);
  const std::size_t shape = width_if_any(rows, &OperandRow::shape, 5, 20);
  const std::size_t dtype = width_if_any(rows, &OperandRow::dtype, 5, 12);
  const std::size_t fixed = 4 + arg + device + shape + dtype + 4 * 2;
  const std::size_t room = style.width > fixed + 12 ? style.width - fixed : 12;
  const std::size_t name = std::min(widest(rows, &OperandRow::name, 4), room);

  const auto cell = [](const std::string& text, std::size_t width) {
    return width == 0 ? std::string() : "  " + pad_right(cut_right(text, width), width);
  };
  // The names stand behind the arguments, where a column has those.
  const std::size_t first = arg == 0 ? std::max(name, std::size_t{7}) : arg + 2 + name;
  Lines lines;
  std::string heading =
      pad_right("operand", first) + "  " + pad_right("device", device) + cell("shape", shape) + cell("dtype", dtype);
  heading.erase(heading.find_last_not_of(' ') + 1);
  lines.push_back("    " + painted(style, Paint::faint, heading));
  for (const OperandRow& row : rows) {
    const bool odd = row.operand->odd;
    std::string line = odd ? "  " + painted(style, Paint::error, "▸") + " " : "    ";
    if (arg != 0) line += pad_right(cut_right(row.arg, arg), arg) + "  ";
    const std::size_t wide = arg == 0 ? first : name;
    line += painted(style, odd ? Paint::strong : Paint::plain, pad_right(cut_middle(row.name, name), wide)) + "  ";
    line += painted(style, odd ? Paint::error : Paint::note, pad_right(cut_right(row.device, device), device));
    line += cell(row.shape, shape) + cell(row.dtype, dtype);
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
  }
  if (rows.size() < finding.operands.size()) {
    lines.push_back(
        "    " + painted(style, Paint::faint, "… " + counted(finding.operands.size() - rows.size(), "more operand")));
  }
  return lines;
}

Lines cause_lines(const Finding& finding, std::size_t gutter, const Style& style) {
  Lines lines;
  const auto heading = [&](std::string_view word, Paint paint, const std::string& file, int line) {
    lines.push_back("");
    lines.push_back("  " + painted(style, paint, word) + " at " +
                    painted(style, Paint::place, place_text(file, line, style.width - word.size() - 6)));
  };
  const auto source = [&](const std::string& file, int line) {
    const bool shown = finding.where && finding.where->file == file && finding.where->line == line;
    const std::optional<Frame> frame = shown ? std::nullopt : frame_at(finding, file, line);
    if (!frame) return;
    for (std::string& text : excerpt(*frame, {}, gutter, style)) lines.push_back(std::move(text));
  };
  const auto& cause = finding.root_cause;
  if (cause) {
    heading(cause_title(*cause), Paint::strong, cause->file, cause->line);
    source(cause->file, cause->line);
    append_wrapped(lines, cause->why, 4, style);
  }
  if (const auto& fix = finding.fix) {
    const bool at_cause = cause && cause->file == fix->file && cause->line == fix->line;
    const bool at_failure = finding.where && finding.where->file == fix->file && finding.where->line == fix->line;
    if (at_cause || at_failure) {
      lines.push_back("");
      lines.push_back("  " + painted(style, Paint::good, "Change") +
                      (finding.growth   ? " where they are kept"
                       : at_cause       ? " in that line"
                       : finding.raised ? " in the line that failed"
                                        : " in this line"));
    } else {
      heading("Change", Paint::good, fix->file, fix->line);
      source(fix->file, fix->line);
    }
    append_wrapped(lines, fix->text, 4, style);
  }
  if (!finding.alternatives.empty()) {
    lines.push_back("");
    lines.push_back("  " + painted(style, Paint::strong, "Or") + " change one of these lines");
  }
  for (const RootCause& one : finding.alternatives) {
    lines.push_back("    " + painted(style, Paint::place, place_text(one.file, one.line, style.width - 4)));
    append_wrapped(lines, one.why, 6, style);
  }
  return lines;
}

Lines apart_lines(const Finding& finding, const Style& style) {
  std::vector<std::string> sentences = apart_sentences(finding);
  if (!sentences.empty() && !finding.differs.empty()) sentences.back() += ":";
  Lines lines;
  for (const std::string& sentence : sentences) append_wrapped(lines, sentence, 2, style, Paint::strong);
  for (const Difference& difference : finding.differs) append_wrapped(lines, difference_text(difference), 4, style);
  return lines;
}

std::vector<std::string> circumstance_parts(const Finding& finding) {
  std::vector<std::string> parts;
  if (finding.ranks.size() > 1) {
    parts.push_back("ranks " + ranges_of(finding.ranks));
  } else if (finding.rank) {
    parts.push_back("rank " + std::to_string(*finding.rank));
  }
  parts.push_back((finding.count > 1 ? "first at step " : "step ") + std::to_string(finding.step));
  if (finding.phase != trace::Phase::other) parts.emplace_back(name_of(finding.phase));
  if (!finding.thread_name.empty()) parts.push_back("thread " + printable(finding.thread_name));
  parts.push_back("pid " + std::to_string(finding.pid));
  parts.push_back(finding.count == 1 ? "once" : counted(finding.count, "time"));
  return parts;
}

Lines circumstances(const Finding& finding, std::size_t indent, const Style& style) {
  const std::vector<std::string> parts = circumstance_parts(finding);
  std::vector<std::string> texts;
  for (const std::string& part : parts) {
    const bool fits = !texts.empty() && indent + columns_of(texts.back() + kDot + part) <= style.width;
    if (fits) {
      texts.back() += kDot + part;
    } else {
      texts.push_back(part);
    }
  }
  Lines lines;
  for (const std::string& text : texts) append_wrapped(lines, text, indent, style, Paint::faint);
  return lines;
}

std::string shape_text(const Operand& operand) {
  if (!operand.shape) return "";
  std::string text = "[";
  for (const std::int64_t size : *operand.shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  if (operand.hidden_dims > 0) text += ", …";
  return text + "]";
}

}  // namespace devsan::report
