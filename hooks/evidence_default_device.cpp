// Where the program sets a default device, for what a factory made there without being told.
#include <optional>
#include <string_view>

#include "hooks/byte_code.h"
#include "hooks/evidence.h"
#include "hooks/runtime.h"
#include "hooks/sites.h"

namespace devsan::hooks {

namespace {

constexpr std::string_view kSetter = "set_default_device";
constexpr int kMaxSteps = 10;

// A mode of torch's own gives the factory the device: it runs between the program's line and the operator.
bool made_by_default(const trace::OperandRecord& operand) {
  trace::LineageNode node = runtime.recorder->lineage(operand.lineage);
  for (int steps = 0; node.how == trace::How::derived && steps < kMaxSteps; ++steps) {
    node = runtime.recorder->lineage(node.parent);
  }
  if (node.how != trace::How::created || node.device != operand.device) return false;
  const trace::Site site = runtime.recorder->site(node.site);
  return runtime.recorder->string(site.innermost.file).ends_with("/torch/utils/_device.py");
}

}  // namespace

void find_default_device(const Inquiry& inquiry, std::size_t operand) {
  if (!made_by_default(inquiry.operands[operand])) return;
  std::optional<trace::Position> found;
  for (const void* code : inquiry.own_code.code()) {
    if (!mentions_text(code, kSetter)) continue;
    const ByteCode byte_code(code);
    for (const Instruction& one : byte_code.instructions()) {
      const bool loads = one.operation == Operation::load_attribute || one.operation == Operation::load_variable;
      if (!loads || !is_name(one.operand, kSetter)) continue;
      const trace::Position at = position_of(code, one.offset);
      if (found && (found->line != at.line || found->file != at.file)) return;
      found = at;
    }
  }
  if (found) inquiry.found.add(trace::EvidenceKind::default_device_at, operand, *found, "");
}

}  // namespace devsan::hooks
