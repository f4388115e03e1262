// An operator that takes a number or an index gets a tensor on a device: PyTorch calls `.item()` for it, and the host
// waits until the device has computed it.
#include <algorithm>
#include <array>
#include <string_view>

#include "report/causes/traffic_causes.h"
#include "report/model/call_text.h"
#include "report/model/frames.h"
#include "report/model/statement_text.h"
#include "trace/words.h"

namespace devsan::report::traffic_causes {

namespace {

// The line that computed the number. What the failing line itself still did to it (`alpha=-ratio`) is passed over.
const LineageStep* maker_of(const Operand& number, const Frame& where) {
  const LineageStep* maker = nullptr;
  for (const LineageStep& step : number.lineage) {
    if (step.at.file.empty()) break;
    if (maker == nullptr || same_line(maker->at, where)) maker = &step;
  }
  return maker;
}

// `torch.tensor(ratios)` of a list of tensors asks each of them for its number.
bool makes_tensor_of_tensors(const Frame& where) {
  constexpr std::array<std::string_view, 2> kMakers = {"tensor", "as_tensor"};
  const std::string call = call_at(where);
  const auto split = split_call(call);
  return split && split->receiver == "torch" && trace::calls_method(call, kMakers);
}

TrafficCause read_one_by_one(const Frame& where, const std::string& device) {
  return {RootCause{where.file, where.line, where.function, "",
                    "What this call is given are numbers on " + device +
                        ". It makes Python numbers of them, one by one, and the host waits for each."},
          Fix{where.file, where.line, "Leave them on " + device + ": `torch.stack()` of the same list."}};
}

// `for start, end in zip(offsets[:-1], offsets[1:]):`, whose variables are elements of a tensor; or `start =
// offsets[k]`.
TrafficCause taken_out(const Frame& line, const Finding& finding, const std::string& device) {
  const bool loop = statement_of(line.statement()).starts_with("for ");
  const std::string takes = loop ? "This loop takes its numbers out of a tensor on " + device + " one by one. "
                                 : "This line takes its numbers out of a tensor on " + device + ". ";
  return {
      RootCause{line.file, line.line, line.function, "",
                takes + finding.traffic->taker + " in " + short_place(*finding.where) +
                    " takes each as a Python number, and the host waits for it."},
      Fix{line.file, line.line,
          loop ? "Bring them to the host all at once, before the loop: go through what `.tolist()` gives of that "
                 "tensor."
               : "Bring them to the host all at once, and take them out of what `.tolist()` gives of that tensor; or "
                 "compute with them on " +
                     device + "."}};
}

// "k" of `k = lengths.clamp(min=1)`, where the failing line takes an entry of it, `x.topk(k[i])`. Empty where it does
// not.
std::string_view entry_taken_of(const Frame& made, const Frame& where) {
  const auto assigned = split_assignment(made.statement());
  if (!assigned || same_line(made, where) || !same_function(made, where)) return {};
  const std::string_view name = assigned->target;
  const std::string_view text = where.statement();
  for (std::size_t at = find_name(text, name); at != text.npos; at = find_name(text, name, at + 1)) {
    const std::string_view behind = text.substr(at + name.size());
    const std::string_view index = behind.substr(0, behind.find(']'));
    if (index.starts_with('[') && index.find_first_of(":,") == index.npos) return name;
  }
  return {};
}

TrafficCause entry_taken(const std::string& name, const Frame& made, const Finding& finding,
                         const std::string& device) {
  const Frame& where = *finding.where;
  return {
      RootCause{where.file, where.line, where.function, "",
                "This line takes an entry out of `" + name + "`, a tensor on " + device + " that " + short_place(made) +
                    " makes. " + finding.traffic->taker + " takes it as a Python number, and the host waits for each."},
      Fix{where.file, where.line,
          "Bring them to the host all at once, before they are needed, and take the entries out of what `" + name +
              ".tolist()` gives; or compute with them on " + device + "."}};
}

// Whether an operator gives one number whatever it is given; what others give may be a tensor of which that is an
// entry.
bool gives_one_number(const LineageStep& step) {
  constexpr std::array<std::string_view, 8> kWhole = {"aten::sum", "aten::mean", "aten::max",    "aten::min",
                                                      "aten::dot", "aten::prod", "aten::median", "aten::trace"};
  return std::ranges::find(kWhole, step.op) != kWhole.end();
}

std::string how_it_came(const LineageStep& made, const std::string& device) {
  if (made.how == trace::How::derived && gives_one_number(made)) return "This line makes one number on " + device;
  return (made.how == trace::How::moved ? "This line brings the number to " : "This line makes the number on ") +
         device + ", by itself or as an entry of a tensor";
}

}  // namespace

std::optional<TrafficCause> number_on_device(const Finding& finding) {
  if (finding.kind != Kind::implicit_sync || finding.severity == Severity::note || !finding.where) return std::nullopt;
  std::optional<RootCause> cause;
  std::string device = "the device";
  if (!finding.operands.empty() && makes_tensor_of_tensors(*finding.where)) {
    return read_one_by_one(*finding.where, finding.operands.front().device);
  }
  if (!finding.operands.empty()) {
    const Operand& number = finding.operands.front();
    device = number.device;
    if (finding.traffic->copy) return taken_out(*finding.traffic->copy, finding, device);
    if (const LineageStep* made = maker_of(number, *finding.where)) {
      const std::string_view name = entry_taken_of(made->at, *finding.where);
      if (!name.empty()) return entry_taken(std::string(name), made->at, finding, device);
      cause =
          RootCause{made->at.file, made->at.line, made->at.function, "",
                    how_it_came(*made, device) + ". " + finding.traffic->taker + " in " + short_place(*finding.where) +
                        " takes it as a Python number, so the host waits for the device there."};
    }
  }
  if (finding.traffic->taker == Traffic::kPythonIndex) {
    return TrafficCause{std::move(cause), Fix{finding.where->file, finding.where->line,
                                              "Keep the number on the host; of several, bring all over at once, with "
                                              "`.tolist()`. If the wait is meant, say so with `.item()`."}};
  }
  return TrafficCause{
      std::move(cause),
      Fix{finding.where->file, finding.where->line,
          "Keep the number on the host, or use a form of this call that takes a tensor on " + device +
              " (such as `torch.where`, multiplication, or `index_select`). If the wait is meant, say so "
              "with `.item()`."}};
}

}  // namespace devsan::report::traffic_causes
