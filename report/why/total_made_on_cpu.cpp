// A running total that begins as a CPU tensor of one number and takes in numbers computed on an accelerator. An
// operator in place may not change its target's device, so the first number is refused.
#include <algorithm>
#include <cstdint>

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

// A buffer begins where its module does, and moves with that.
std::optional<Explanation> of_unmoved_module(const Operand& total, const Pair& pair, const Finding& finding) {
  const Evidence* module = place_of(total, trace::EvidenceKind::module_bound_at, finding);
  if (module == nullptr) return std::nullopt;
  const std::string to = "`.to('" + pair.odd.device + "')`";
  return Explanation{cause_at(module->at, total,
                              mention_first(total) + " is a buffer of `" + module->text +
                                  "`, which gets its value here, on the CPU; nothing has moved it since. It takes in " +
                                  mention(pair.odd) + ", which is on " + pair.odd.device + "."),
                     Fix{module->at.file, module->at.line,
                         "Move `" + module->text + "` with " + to + " where it is made, as a model is moved."}};
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
  const std::string argument = "device='" + pair->odd.device + "'";
  const std::string edit = names_device(origin->at) ? "" : with_argument(call_at(origin->at), argument);
  RootCause cause = cause_at(origin->at, total,
                             mention_first(total) + " begins in this line as a tensor on the CPU. It takes in " +
                                 mention(pair->odd) + ", which is on " + pair->odd.device +
                                 ", and an operator in place cannot change its target's device.");
  return Explanation{std::move(cause), Fix{origin->at.file, origin->at.line,
                                           "Begin on " + pair->odd.device + ": `" + (edit.empty() ? argument : edit) +
                                               "`; or keep a Python number, and add `.item()` of what comes, which "
                                               "waits for the device each time."}};
}

}  // namespace devsan::report::why
