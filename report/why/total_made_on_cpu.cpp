// A running total that begins as a CPU tensor of one number and takes in numbers computed on an accelerator. An
// operator in place may not change its target's device, so the first number is refused.
#include <algorithm>
#include <cstdint>

#include "report/frames.h"
#include "report/operands.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"
#include "trace/odd_operand.h"

namespace devsan::report::why {

namespace {

// 0-dim, or `torch.tensor([0.0])`, which is no scalar to PyTorch.
bool is_one_number(const Operand& total) {
  return total.shape && std::ranges::all_of(*total.shape, [](std::int64_t size) { return size == 1; });
}

// `scores *= factor` takes nothing in: the factor is what came as a tensor instead of a number.
bool is_scaled(const Finding& finding) {
  const std::string_view op = trace::operator_base_name(finding.op);
  return op == "mul_" || op == "div_" || op == "pow_";
}

std::string takes_in(const Pair& pair) {
  return "It takes in " + mention(pair.odd) + ", which is on " + pair.odd.device + ".";
}

// A buffer begins where its module does, and moves with that.
Explanation of_named_module(const Evidence& module, const Operand& total, const Pair& pair) {
  const std::string to = "`.to('" + pair.odd.device + "')`";
  return {cause_at(module.at, total,
                   mention_first(total) + " is a buffer of `" + module.text +
                       "`, which gets its value here, on the CPU; nothing has moved it since. " + takes_in(pair)),
          Fix{module.at.file, module.at.line,
              "Move `" + module.text + "` with " + to + " where it is made, as a model is moved."}};
}

// `self.stats = Stats()`, of an object that is given a model which is on an accelerator already: nobody moves the
// object later.
bool is_made_beside_moved(const Operand& total, const Evidence& made) {
  return belongs_to_part(total) && calls_move(call_at(made.at));
}

std::optional<Explanation> of_unmoved_module(const Operand& total, const Pair& pair, const Finding& finding) {
  if (const Evidence* named = place_of(total, trace::EvidenceKind::module_bound_at, finding))
    return of_named_module(*named, total, pair);
  const Evidence* made = place_of(total, trace::EvidenceKind::module_made_at, finding);
  if (made == nullptr || total.lineage.empty()) return std::nullopt;
  const Evidence* kept = place_of(total, trace::EvidenceKind::attribute_set_at, finding);
  if (kept != nullptr && is_made_beside_moved(total, *made)) {
    return Explanation{
        cause_at(kept->at, total,
                 mention_first(total) + " is a buffer of the module that is kept as `" +
                     std::string(attribute_of_path(kept->text)) + "` from here on, on the CPU. " + takes_in(pair)),
        Fix{kept->at.file, kept->at.line,
            "Make this part where those are that come with it: `.to('" + pair.odd.device + "')`."}};
  }
  const Frame& begun = total.lineage.back().at;
  if (!registers_weight(begun) || !is_changeable(begun, finding)) return std::nullopt;
  return Explanation{
      cause_at(begun, total,
               mention_first(total) + " begins in this line, on the CPU, as a buffer of a `" + made->text +
                   "`, which " + short_place(made->at) + " makes, and nothing has moved since. " + takes_in(pair)),
      move_module_where_made(made->at, pair.odd.device)};
}

// `travel, effort = self.running(group)`: an optimizer's load_state_dict() brings the state of each parameter to where
// that is, and copies the settings of its groups as they were saved. The line that takes one of these has to bring it.
std::optional<Explanation> of_restored_group(const Operand& total, const Pair& pair, const Finding& finding) {
  if (total.lineage.empty() || total.lineage.front().op != "at::storage_copy") return std::nullopt;
  const Frame& restored = total.lineage.front().at;
  const Evidence* bound = place_of(total, trace::EvidenceKind::bound_at, finding);
  const bool by_optimizer = restored.statement().find(".load_state_dict(") != std::string::npos;
  if (!by_optimizer || bound == nullptr || !is_running(bound->at, finding)) return std::nullopt;
  const Evidence* back = place_of(total, trace::EvidenceKind::handed_back_at, finding);
  const Frame& place = back != nullptr ? back->at : bound->at;
  return Explanation{
      cause_at(place, total,
               mention_first(total) + " is taken out of a parameter group here, where " + short_place(restored) +
                   " has put it as it was saved, on the CPU: load_state_dict() moves the state of parameters, and not "
                   "the settings of their groups. It takes in " +
                   mention(pair.odd) + ", which is on " + pair.odd.device + "."),
      Fix{place.file, place.line,
          "Bring it to the device of the group's parameters in this line: `.to(group[\"params\"][0].device)`; or keep "
          "it in the state of a parameter."}};
}

// `total += own.pow(3).sum()`: the first line of the failing function that made something of it, where it came from a
// weight or out of another function. Null where that made it itself, or the line has not run.
const LineageStep* first_taken_in(const Operand& total, const Finding& finding) {
  const LineageStep* first = nullptr;
  for (const LineageStep& step : total.lineage) {
    if (!same_function(step.at, *finding.where) || step.how != trace::How::derived) break;
    first = &step;
  }
  return first != nullptr && !same_line(first->at, *finding.where) && is_changeable(first->at, finding) ? first
                                                                                                        : nullptr;
}

Explanation taken_in_from_host(const LineageStep& first, const Operand& total, const Pair& pair,
                               const Finding& finding) {
  // `own = relation.factors(kind)`: a variable of the function has what that line begins with.
  const Evidence* from = place_of(total, trace::EvidenceKind::computed_from, finding);
  const bool named = from != nullptr && same_function(from->at, first.at) && from->at.line < first.at.line;
  const Frame& place = named ? from->at : first.at;
  return {cause_at(place, total,
                   (named ? "`" + from->text + "`, which " + mention(total) +
                                " takes its first value from, gets its "
                                "value in this line"
                          : mention_first(total) + " takes its first value in this line") +
                       ", on the CPU. " + (named ? "The total " : "It ") + takes_in_place(pair.odd)),
          Fix{place.file, place.line,
              "Bring it to " + pair.odd.device + " in this line: `.to('" + pair.odd.device + "')`."}};
}

}  // namespace

std::optional<Explanation> total_made_on_cpu(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !pair->odd.is_scalar() || !on_accelerator(pair->odd) || is_scaled(finding)) return std::nullopt;
  const Operand& total = pair->wanted;
  if (!total.on_cpu() || !is_one_number(total) || newest_move_of(total) != nullptr) return std::nullopt;
  if (is_weight(total)) return of_unmoved_module(total, *pair, finding);
  const LineageStep* origin = arrival_of(total);
  if (origin == nullptr || origin->how != trace::How::created || !is_changeable(origin->at, finding)) {
    return std::nullopt;
  }
  if (auto restored = of_restored_group(total, *pair, finding)) return restored;
  if (is_load(*origin)) return std::nullopt;
  if (const LineageStep* first = first_taken_in(total, finding))
    return taken_in_from_host(*first, total, *pair, finding);
  const std::string argument = "device='" + pair->odd.device + "'";
  const std::string edit = names_device(origin->at) ? "" : with_argument(call_at(origin->at), argument);
  RootCause cause =
      cause_at(origin->at, total,
               mention_first(total) + " begins in this line as a tensor on the CPU. It " + takes_in_place(pair->odd));
  return Explanation{std::move(cause), Fix{origin->at.file, origin->at.line,
                                           "Begin on " + pair->odd.device + ": `" + (edit.empty() ? argument : edit) +
                                               "`; or keep a Python number, and add `.item()` of what comes, which "
                                               "waits for the device each time."}};
}

}  // namespace devsan::report::why
