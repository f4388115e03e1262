// Where the program makes its generators. A generator has no history as tensors have; but where one line alone makes
// any, it is known which.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/waiting_calls.h"
#include "hooks/inprocess/interpreter/byte_code.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/interpreter/variable_stores.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/snapshot/named_objects.h"
#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"

namespace devsan::hooks {

namespace {

// `torch.Generator(` or `Generator(`; no annotation, and none of NumPy's.
bool makes_generator(std::string_view line) {
  constexpr std::string_view kCall = "Generator(";
  constexpr std::string_view kModule = "torch.";
  for (std::size_t at = line.find(kCall); at != line.npos; at = line.find(kCall, at + 1)) {
    const std::string_view before = line.substr(0, at);
    if (before.ends_with(kModule)) return true;
    const bool whole_name = before.empty() || std::string_view(" \t=(,[{:").find(before.back()) != line.npos;
    if (whole_name) return true;
  }
  return false;
}

// Whether the line names another device for it than the one that it is on: `torch.Generator(device="cuda")` of one on
// the CPU.
bool names_other_device(std::string_view line, bool on_cpu) {
  std::string_view call = line.substr(std::min(line.find("Generator("), line.size()));
  call = call.substr(0, call.find(')'));
  const auto says = [call](std::string_view text) { return call.find(text) != call.npos; };
  return on_cpu ? says("\"cuda") || says("'cuda") : says("\"cpu\"") || says("'cpu'");
}

// "seeded" of `with seeded(7) as generator:`; empty where the statement that binds the variable is another one.
std::string with_function(const Inquiry& inquiry, std::size_t operand, SourceFiles& files) {
  for (const trace::EvidenceRecord& one : inquiry.found.records()) {
    if (one.operand != operand || one.kind != trace::EvidenceKind::bound_at) continue;
    const std::string statement = statement_at(SourceLines(files.whole(one.at.file)), one.at.line);
    const std::string as = " as " + std::string(runtime.recorder->string(one.text));
    const std::size_t end = statement.find(as);
    if (!statement.starts_with("with ") || end == statement.npos) continue;
    // `with torch.inference_mode(), seeded(7) as generator:`
    const std::string managers = "(" + statement.substr(5, end - 5) + ")";
    const auto all = arguments_at(managers, 0);
    const std::string_view manager = all && !all->empty() ? std::string_view(all->back()) : std::string_view();
    const std::string_view callee = trimmed(manager.substr(0, manager.find('(')));
    if (callee.size() == manager.size()) continue;
    return std::string(callee.substr(callee.rfind('.') + 1));
  }
  return "";
}

// The only `yield` of the only function of that name, or the line that makes what it yields.
void find_yielded(const Inquiry& inquiry, std::size_t operand) {
  SourceFiles files;
  const std::string name = with_function(inquiry, operand, files);
  const void* code = name.empty() ? nullptr : only_function(inquiry, name);
  if (code == nullptr) return;
  const trace::Position begin = position_of(code, 0);
  const SourceLines lines(files.whole(begin.file));
  const int first = code_first_line(code);
  int found = only_line_of(lines, first, "yield ");
  if (found == 0) return;
  const std::string yielded(trimmed(std::string_view(statement_at(lines, found)).substr(6)));
  const auto assigned = is_identifier(yielded) ? assignments_of(lines, yielded, first + 1, found) : std::vector<int>();
  if (assigned.size() == 1) found = assigned.front();
  inquiry.found.add(trace::EvidenceKind::generator_yielded_at, operand,
                    position_at(begin.file, found, qualified_function(lines, found)), name);
}

// `if _generator is None:` around the line that makes it for a device which it is given: the next one who asks for
// another device gets the same.
void find_guard(const Inquiry& inquiry, std::size_t operand, const trace::Position& made) {
  SourceFiles files;
  const SourceLines lines(files.whole(made.file));
  const std::string statement = statement_at(lines, made.line);
  const std::size_t equals = equals_of(statement);
  const int guard = condition_around(lines, made.line);
  if (equals == statement.npos || guard == 0) return;
  const std::string_view kept = trimmed(std::string_view(statement).substr(0, equals));
  const std::string condition = statement_at(lines, guard);
  const bool for_device = !device_expression(trimmed(std::string_view(statement).substr(equals + 1))).empty();
  if (!for_device || condition.find(kept) == condition.npos || condition.find("device") != condition.npos) return;
  inquiry.found.add(trace::EvidenceKind::cache_guard_at, operand,
                    position_at(made.file, guard, qualified_function(lines, guard)), condition);
}

// "x" of `torch.randn(n, generator=generator, device=x.device)`, which fails in this frame; empty where the device is
// said otherwise.
std::string variable_asked(const void* frame) {
  constexpr std::string_view kArgument = "device=";
  constexpr std::string_view kAsks = ".device";
  SourceFiles files;
  const trace::Position at = waits_at(frame);
  const auto call = call_text(code_text(SourceLines(files.whole(at.file)), at));
  if (!call) return "";
  for (const std::string& argument : call->arguments) {
    if (!argument.starts_with(kArgument) || !argument.ends_with(kAsks)) continue;
    const std::size_t length = argument.size() - kArgument.size();
    if (length <= kAsks.size()) continue;
    std::string name = argument.substr(kArgument.size(), length - kAsks.size());
    if (is_identifier(name)) return name;
  }
  return "";
}

// The only line that can have given that variable its value.
void find_asked(const Inquiry& inquiry, std::size_t operand) {
  const void* frame = program_frame(inquiry.innermost);
  const std::string name = frame != nullptr ? variable_asked(frame) : std::string();
  const auto place = name.empty() ? std::nullopt : variable_place(frame, name);
  if (!place || place->link.name == nullptr || type_name(place->object) != "Tensor") return;
  const void* code = frame_code(frame);
  const ReachingStores stores = stores_reaching(ByteCode(code), frame_instruction(frame, code), place->link.name);
  if (stores.from_start || stores.offsets.size() != 1) return;
  inquiry.found.add(trace::EvidenceKind::device_asked_of_at, operand, position_of(code, stores.offsets.front()), name);
}

}  // namespace

void find_generator(const Inquiry& inquiry, std::size_t operand) {
  if ((inquiry.operands[operand].flags & trace::kGenerator) == 0) return;
  const bool on_cpu =
      runtime.recorder->string(runtime.recorder->device_name(inquiry.operands[operand].device)) == "cpu";
  const auto found = only_load(inquiry, "Generator", [on_cpu](std::string_view line) {
    return makes_generator(line) && !names_other_device(line, on_cpu);
  });
  if (found) {
    inquiry.found.add(trace::EvidenceKind::generator_made_at, operand, *found, "");
    find_guard(inquiry, operand, *found);
  }
  // `torch.default_generator`, which is the CPU's, and which nobody makes.
  const auto standard = found || !on_cpu ? std::nullopt : only_load(inquiry, "default_generator");
  if (standard) inquiry.found.add(trace::EvidenceKind::generator_made_at, operand, *standard, "default_generator");
  find_yielded(inquiry, operand);
  find_asked(inquiry, operand);
}

}  // namespace devsan::hooks
