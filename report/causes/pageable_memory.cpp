// The driver copies pageable memory through a buffer of its own, and the host waits for that. What has to be pinned is
// the memory, so the line to change is the one that made it.
#include <algorithm>
#include <vector>

#include "report/causes/traffic_causes.h"
#include "report/model/call_text.h"
#include "report/model/frames.h"
#include "report/model/statement_text.h"

namespace devsan::report::traffic_causes {
namespace {

// A factory of torch that takes `pin_memory=`.
bool is_factory(const LineageStep& made) {
  static constexpr std::string_view kFactories[] = {"empty",   "zeros",         "ones",   "full",
                                                    "rand",    "randn",         "arange", "eye",
                                                    "randint", "empty_strided", "tensor", "randperm"};
  const std::string& op = made.op;
  const std::size_t colons = op.find("::");
  std::string_view name = std::string_view(op).substr(colons == std::string::npos ? 0 : colons + 2);
  name = name.substr(0, name.find('.'));
  // The line may call something that calls the factory, and has no such argument.
  const std::string call = call_at(made.at);
  const std::string& text = call.empty() ? made.at.statement() : call;
  const bool called = text.empty() || text.find(std::string(name) + "(") != std::string::npos;
  return called && made.how == trace::How::created && std::ranges::find(kFactories, name) != std::end(kFactories);
}

// `.pin_memory()` returns a copy, which this one is not.
TrafficCause pinned_elsewhere(const Finding& finding, const Operand& host) {
  const Frame& at = *finding.traffic->copy;
  const std::string call = call_at(at);
  const std::string what = call.empty() ? "`.pin_memory()`" : "`" + call + "`";
  RootCause cause{at.file, at.line, at.function, host.name,
                  what + " returns a copy in pinned memory. What " + short_place(*finding.where) +
                      " copies is the tensor from before, in pageable memory: `non_blocking=True` has no effect there, "
                      "and the host waits for the copy."};
  const auto parts = split_call(call);
  const bool dropped = parts && statement_of(at.statement()) == call && !parts->receiver.empty();
  std::string change = dropped ? "Keep the result: `" + std::string(parts->receiver) + " = " + call + "`."
                               : "Copy from the result of this line in " + short_place(*finding.where) + ".";
  return {std::move(cause), Fix{at.file, at.line, std::move(change)}};
}

// A batch is pinned by whoever makes the loader.
TrafficCause loaded_unpinned(const Finding& finding, const Operand* host) {
  const Frame& at = *finding.traffic->copy;
  RootCause cause{at.file, at.line, at.function, host != nullptr ? host->name : std::string(),
                  "The DataLoader gives batches in pageable memory, as this line has it made: `non_blocking=True` in " +
                      short_place(*finding.where) + " has no effect on them, and the host waits for each copy."};
  return {std::move(cause), Fix{at.file, at.line, "Pass `pin_memory=True` to the DataLoader."}};
}

// `torch.empty(n, pin_memory=pin)`: the factory does as it is told.
std::string pinned_at_factory(const Frame& made) {
  const std::string call = call_at(made);
  const auto parts = split_call(call);
  for (const ArgumentText& one : parts ? parts->arguments : std::vector<ArgumentText>()) {
    if (one.keyword != "pin_memory" || is_literal(one.text)) continue;
    return "Make it in pinned memory: `" + std::string(one.text) +
           "`, which this line gives as `pin_memory`, was not true.";
  }
  return "Make it in pinned memory: pass `pin_memory=True` in this line.";
}

}  // namespace

std::optional<TrafficCause> pageable_memory(const Finding& finding) {
  if (finding.kind != Kind::unpinned_async_copy || !finding.where) return std::nullopt;
  const auto host = std::ranges::find_if(finding.operands, &Operand::on_cpu);
  if (host != finding.operands.end() && finding.traffic->copy && !finding.traffic->from_loader) {
    return pinned_elsewhere(finding, *host);
  }
  if (finding.traffic->copy && finding.traffic->from_loader) {
    return loaded_unpinned(finding, host != finding.operands.end() ? &*host : nullptr);
  }
  const LineageStep* made = nullptr;
  if (host != finding.operands.end() && !host->lineage.empty() && !host->lineage.front().at.file.empty()) {
    made = &host->lineage.front();
  }
  if (made == nullptr) {
    return TrafficCause{
        std::nullopt, Fix{finding.where->file, finding.where->line,
                          "The host's side of this copy is pageable memory, so the host waits. Pin it where it is made "
                          "(`pin_memory=True`, or `.pin_memory()`), or leave `non_blocking=True` out."}};
  }
  const Frame& at = made->at;
  RootCause cause{at.file, at.line, at.function, host->name,
                  "This line makes " +
                      (host->name.empty() ? "the operand `" + host->arg + "`" : "`" + host->name + "`") +
                      " in pageable memory, which cannot be copied asynchronously: `non_blocking=True` in " +
                      short_place(*finding.where) + " has no effect, and the host waits for the copy."};
  std::string change =
      finding.traffic->from_loader ? "Pass `pin_memory=True` to the DataLoader that this line reads from."
      : is_factory(*made)          ? pinned_at_factory(made->at)
                          : "Call `.pin_memory()` on the result of this line, or write it into a pinned buffer.";
  return TrafficCause{std::move(cause), Fix{at.file, at.line, std::move(change)}};
}

}  // namespace devsan::report::traffic_causes
