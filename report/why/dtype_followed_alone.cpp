// `past = EMPTY_PAST.to(hidden.dtype)`: a line makes what it takes fit what it will meet, and asks that for its dtype
// alone. The same call takes a device.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/call_text.h"
#include "report/statement_text.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"
#include "trace/words.h"

namespace devsan::report::why {
namespace {

// "hidden" of `past.to(hidden.dtype)` and `past.to(dtype=hidden.dtype)`, where nothing stands behind that; empty for
// all else.
std::string_view followed_in(std::string_view value) {
  constexpr std::string_view kDtype = ".dtype)";
  if (!value.ends_with(kDtype)) return {};
  value.remove_suffix(kDtype.size());
  const std::size_t call = value.rfind(".to(");
  if (call == value.npos) return {};
  value.remove_prefix(call + 4);
  constexpr std::string_view kKeyword = "dtype=";
  if (value.starts_with(kKeyword)) value.remove_prefix(kKeyword.size());
  const bool path = std::ranges::all_of(value, [](char c) { return trace::is_word(c) || c == '.'; });
  return path && value != "self" && !value.starts_with("torch.") ? value : std::string_view();
}

// Whether an evidence is a line that a value came through, which gave it a name.
bool is_way(const Evidence& one) {
  return one.kind == trace::EvidenceKind::bound_at || one.kind == trace::EvidenceKind::came_through_at ||
         one.kind == trace::EvidenceKind::computed_from;
}

// Whether a value goes by this name, or came to the operator by way of it.
bool leads_from(const Operand& operand, std::string_view name) {
  if (operand.name == name) return true;
  return std::ranges::any_of(operand.evidence, [&](const Evidence& one) {
    return (is_way(one) || one.kind == trace::EvidenceKind::given_at) && one.text == name;
  });
}

// The lines that the odd operand came through, the newest first.
std::vector<const Frame*> lines_of(const Operand& odd) {
  std::vector<const Frame*> lines;
  for (const LineageStep& step : odd.lineage) {
    if (step.how == trace::How::derived) lines.push_back(&step.at);
  }
  for (const Evidence& one : odd.evidence) {
    if (is_way(one)) lines.push_back(&one.at);
  }
  return lines;
}

}  // namespace

std::optional<Explanation> dtype_followed_alone(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !pair->odd.on_cpu() || !on_accelerator(pair->wanted) || !was_never_moved(pair->odd)) return std::nullopt;
  for (const Frame* line : lines_of(pair->odd)) {
    const auto assigned = split_assignment(line->statement());
    const std::string followed(assigned ? followed_in(assigned->value) : std::string_view());
    if (followed.empty() || !is_changeable(*line, finding) || !leads_from(pair->wanted, followed)) continue;
    return Explanation{
        cause_at(*line, pair->odd,
                 "This line makes " + mention(pair->odd) + " fit `" + followed +
                     "`, and asks it for its dtype alone: it stays on the CPU, and `" + followed + "` leads to " +
                     spoken_device(pair->wanted.device) + "."),
        Fix{line->file, line->line, "Take the device along: `.to(" + followed + ".device, " + followed + ".dtype)`."}};
  }
  return std::nullopt;
}

}  // namespace devsan::report::why
