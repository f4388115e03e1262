// The backward of a custom `autograd.Function` returned a gradient on another device than the value that it is the
// gradient of. The line that called backward is not to blame: what is returned was made in the backward.
#include "report/statement_text.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"
#include "trace/odd_operand.h"

namespace devsan::report::why {

namespace {

// `Clip.mask = …` in a forward: kept for all calls of the function, so that another one may have overwritten it.
const LineageStep* kept_for_all(const Operand& odd, const Finding& finding) {
  if (!on_accelerator(odd) || odd.lineage.empty() || !is_changeable(odd.lineage.front().at, finding)) return nullptr;
  const Frame& at = odd.lineage.front().at;
  const auto assigned = split_assignment(at.statement());
  const bool attribute = assigned && assigned->target.find('.') != assigned->target.npos;
  const bool own = assigned && assigned->target.starts_with("ctx.");
  return at.function.ends_with(".forward") && attribute && !own ? &odd.lineage.front() : nullptr;
}

Explanation kept_by_function(const LineageStep& kept, const Pair& pair, const std::string& node) {
  const std::string target(split_assignment(kept.at.statement())->target);
  return {
      cause_at(kept.at, pair.odd,
               "`" + node + "` returns what `" + target + "` keeps, for all calls of its forward: the last of them " +
                   "worked on " + pair.odd.device + ", this one's input is on " + pair.wanted.device + "."),
      Fix{kept.at.file, kept.at.line,
          "Keep it with the call that it belongs to: `ctx.save_for_backward(...)`, or an attribute of `ctx`."}};
}

// The gradient comes from an accelerator, and so does what its function computed; the input that it is for was left on
// the CPU.
std::optional<Explanation> input_left_behind(const Pair& pair, const std::string& node, const Finding& finding) {
  const Operand& input = pair.wanted;
  if (!on_accelerator(pair.odd) || !input.on_cpu() || input.lineage.empty()) return std::nullopt;
  const Frame& place = input.lineage.front().at;
  if (!is_changeable(place, finding)) return std::nullopt;
  const bool computed = input.lineage.front().how == trace::How::derived;
  return Explanation{
      cause_at(place, input,
               "The input that `" + node + "` returns this gradient for " +
                   (computed ? "was computed in this line, on the CPU" : "was made in this line, on the CPU") +
                   ". The gradient is on " + pair.odd.device + ", where `" + node + "` has done its work."),
      Fix{place.file, place.line,
          "Let the input be on " + pair.odd.device +
              ", too: make it where and when the values are that it goes with; or return the gradient on the CPU."}};
}

}  // namespace

std::optional<Explanation> gradient_elsewhere(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !finding.op.starts_with("autograd::") || !pair->wanted.device_argument) return std::nullopt;
  if (trace::wants_host(finding.message)) return std::nullopt;  // of what a hook computes, and not what it returns
  const std::string node = finding.op.substr(finding.op.rfind(':') + 1);
  if (const LineageStep* kept = kept_for_all(pair->odd, finding)) return kept_by_function(*kept, *pair, node);
  if (auto left = input_left_behind(*pair, node, finding)) return left;
  const LineageStep* arrival = arrival_of(pair->odd);
  const std::string change = "Return each gradient of `" + node +
                             "` on the device of the input that it belongs to: `"
                             ".to('" +
                             pair->wanted.device + "')`, or `device=` where it is made.";
  if (arrival == nullptr || !is_changeable(arrival->at, finding)) {
    const Frame& place = finding.forward && !finding.forward->empty() ? finding.forward->front() : *finding.where;
    return Explanation{std::nullopt, Fix{place.file, place.line, change}};
  }
  RootCause cause = cause_at(
      arrival->at, pair->odd,
      "The gradient that `" + node + "` returns " + (arrival->how == trace::How::moved ? "is put on " : "begins on ") +
          spoken_device(pair->odd.device) + " in this line; its input is on " + pair->wanted.device + ".");
  return Explanation{std::move(cause), Fix{arrival->at.file, arrival->at.line, change}};
}

}  // namespace devsan::report::why
