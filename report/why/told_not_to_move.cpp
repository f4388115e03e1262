// `kernel.cuda() if gpu else kernel`: the function moves it when a flag says so, and the call says that it is not to.
#include <string>
#include <string_view>

#include "report/call_text.h"
#include "report/frames.h"
#include "report/statement_lines.h"
#include "report/statement_text.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"
#include "trace/words.h"

namespace devsan::report::why {
namespace {

// "gpu" of `self.kernel = kernel.cuda() if gpu else kernel`; empty where no flag decides about a move to an
// accelerator.
std::string flag_of_move(const Frame& place) {
  constexpr std::string_view kIf = ") if ";
  const std::string& text = place.statement();
  const std::size_t condition = text.find(kIf);
  if (condition == text.npos) return "";
  if (!calls_move(std::string_view(text).substr(0, condition))) return "";
  const std::size_t begin = condition + kIf.size();
  std::size_t end = begin;
  while (end < text.size() && trace::is_word(text[end])) ++end;
  return text.compare(end, 6, " else ") == 0 ? text.substr(begin, end - begin) : "";
}

// The line that the flag decides in: the one that stores the operand, or made it what it is.
const Frame* flagged_line(const Operand& odd, const Finding& finding, std::string& flag) {
  const Evidence* stored = place_of(odd, trace::EvidenceKind::attribute_set_at, finding);
  for (const Frame* place : {stored != nullptr ? &stored->at : nullptr, &odd.lineage.front().at}) {
    flag = place != nullptr ? flag_of_move(*place) : "";
    if (!flag.empty()) return place;
  }
  return nullptr;
}

}  // namespace

std::optional<Explanation> told_not_to_move(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !pair->odd.on_cpu() || pair->odd.lineage.empty() || !was_never_moved(pair->odd)) return std::nullopt;
  std::string flag;
  const Frame* place = flagged_line(pair->odd, finding, flag);
  if (place == nullptr) return std::nullopt;
  const LineageStep& made = pair->odd.lineage.back();
  if (!same_function(made.at, *place) || made.calls.empty() || !is_changeable(made.calls.front(), finding)) {
    return std::nullopt;
  }
  const Frame& call = made.calls.front();
  const std::string told = flag + "=False";
  if (call.statement().find(told) == std::string::npos) return std::nullopt;
  const Frame argument = line_of_argument(call, told);
  return Explanation{
      cause_at(argument, pair->odd,
               short_place(*place) + " moves " + mention(pair->odd) + " if `" + flag +
                   "` says so, and this call gives it as False. What it meets is on " +
                   spoken_device(pair->wanted.device) + "."),
      Fix{argument.file, argument.line,
          "Give `" + flag + "=True` where the work is done on " + pair->wanted.device +
              "; or register it as a buffer in " + short_place(*place) + ", so that it moves with its module."}};
}

}  // namespace devsan::report::why
