#include "report/wording/growth_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "report/model/frames.h"
#include "report/text/lines.h"
#include "report/text/text_layout.h"
#include "report/text/words.h"

namespace devsan::report {
namespace {

constexpr std::size_t kParts = 6;
constexpr std::size_t kNumberColumns = 9;

std::string rate_text(double bytes) {
  return bytes_text(static_cast<std::uint64_t>(std::llround(bytes)));
}

std::string who_of(const Finding& finding) {
  return finding.rank ? "rank " + std::to_string(*finding.rank) : "pid " + std::to_string(finding.pid);
}

std::string part_line(const Growth::Part& part, const Style& style) {
  std::string line = "    " + pad_left(rate_text(part.bytes_per_step), kNumberColumns) + "  " +
                     pad_left(bytes_text(part.bytes), kNumberColumns) + "  ";
  std::string made = part.op;
  if (!part.at.file.empty()) made += " at " + short_place(part.at);
  return line + cut_middle(made, style.width > columns_of(line) ? style.width - columns_of(line) : 20);
}

}  // namespace

std::string container_of(const std::string& holder) {
  return holder.substr(0, holder.find("[...]"));
}

std::string growth_headline(const Finding& finding) {
  const Growth& growth = *finding.growth;
  const std::string rate = rate_text(growth.all_per_step()) + " more with every " + std::string(step_of(growth.clock));
  const std::string whose = growth.device.empty() ? "the memory of " + who_of(finding) : growth.device;
  if (growth.parts.empty()) {
    if (!growth.holder.empty()) return whose + " grows: " + rate + ", kept by the graph of `" + growth.holder + "`";
    return whose + " grows: " + rate +
           (growth.seldom ? ", and the run was too short to tell by which tensors" : ", and no tensors account for it");
  }
  const std::string where = growth.device.empty() ? "the host's memory" : growth.device;
  std::string text = where + " grows: " + rate;
  if (!growth.holder.empty()) text += ", kept by `" + container_of(growth.holder) + "`";
  return text;
}

std::string what_grows_text(const Growth& growth) {
  if (growth.parts.empty()) {
    return growth.holder.empty() ? "" : "What grows: the autograd graph of `" + growth.holder + "`";
  }
  if (growth.holder.empty()) return "What grows";
  return "What grows: `" + growth.holder + "`" + (growth.graph ? ", with its autograd graphs" : "");
}

std::string growth_outlook(const Growth& growth) {
  const std::string step(step_of(growth.clock));
  std::string text = "Since " + step + " " + std::to_string(growth.since) + ".";
  if (growth.steps_left) {
    text += " At this rate " + (growth.device.empty() ? std::string("the host's memory") : growth.device) +
            " is full in " + counted(*growth.steps_left, "more " + step) + ".";
  }
  if (growth.records_per_step > 0) {
    text += " The host's records of these tensors and of their graphs take another " +
            rate_text(growth.records_per_step) + " a " + step + ".";
  }
  if (growth.bounded) text += " The deque drops its oldest entries when it is full.";
  return text;
}

std::vector<std::string> growth_lines(const Finding& finding, const Style& style) {
  Lines lines;
  if (!finding.growth) return lines;
  const Growth& growth = *finding.growth;
  if (const std::string heading = what_grows_text(growth); !heading.empty()) {
    append_wrapped(lines, heading, 2, style, Paint::strong);
  }
  if (!growth.parts.empty()) {
    lines.push_back("    " + painted(style, Paint::faint,
                                     pad_left(growth.clock == trace::SeriesClock::shared_tensors
                                                  ? "each"
                                                  : "a " + std::string(step_of(growth.clock)),
                                              kNumberColumns) +
                                         "  " + pad_left("at last", kNumberColumns) + "  tensors of"));
    for (std::size_t i = 0; i < std::min(growth.parts.size(), kParts); ++i) {
      lines.push_back(part_line(growth.parts[i], style));
    }
    if (growth.parts.size() > kParts) {
      double rest = 0;
      for (std::size_t i = kParts; i < growth.parts.size(); ++i) rest += growth.parts[i].bytes_per_step;
      lines.push_back("    " + pad_left(rate_text(rest), kNumberColumns) + "  " + std::string(kNumberColumns, ' ') +
                      "  " + counted(growth.parts.size() - kParts, "more operator"));
    }
  }
  append_wrapped(lines, growth_outlook(growth), 2, style);
  return lines;
}

namespace {

// "total += loss": what is added to keeps all that it was made of.
void advise_of_sum(Finding& finding, const Frame& at) {
  const std::string& sum = finding.growth->holder;
  finding.root_cause = RootCause{at.file, at.line, at.function, sum,
                                 "`" + sum + "` is made from itself here with its autograd graph, which so keeps the " +
                                     "graphs of all " + std::string(step_of(finding.growth->clock)) + "s before, and " +
                                     "what their backward would need"};
  finding.fix = Fix{at.file, at.line,
                    "add the value itself: `.item()` of a number, or `.detach()` of a tensor, which leaves the graph "
                    "behind; where no gradient is wanted at all, run the loop under `torch.no_grad()`"};
}

}  // namespace

void advise(Finding& finding) {
  const Growth& growth = *finding.growth;
  if (growth.sum_at) return advise_of_sum(finding, *growth.sum_at);
  if (!finding.where || growth.holder.empty() || growth.bounded) return;
  const Frame& at = *finding.where;
  const std::string container = "`" + container_of(growth.holder) + "`";
  const bool open = container.size() < growth.holder.size() + 2;
  std::string why;
  std::string change;
  if (open) {
    why = container + " keeps every tensor that is made here" +
          (growth.graph ? ", and with each of them the graph that its backward would need" : "");
    change = growth.graph ? "put the value itself into " + container +
                                ": `.item()` of a number, or `.detach()` of a tensor, which leaves the graph behind"
                          : "clear " + container + " where a step or an epoch is done with it, or keep fewer of them";
  } else {
    why = container + " is made anew from itself here, and becomes larger each time";
    change = "start " + container + " anew where a step or an epoch is done with it";
  }
  finding.root_cause = RootCause{at.file, at.line, at.function, growth.holder, why};
  finding.fix = Fix{at.file, at.line, change};
}

}  // namespace devsan::report
