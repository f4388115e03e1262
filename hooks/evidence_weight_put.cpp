// A weight that was put into its module from outside, as adapters and averaged weights are: `setattr(layer, name,
// nn.Parameter(value))`, `weight.data = value`.
#include <optional>
#include <string>
#include <string_view>

#include "hooks/byte_code.h"
#include "hooks/evidence.h"
#include "hooks/python_frames.h"
#include "hooks/python_text.h"
#include "hooks/runtime.h"
#include "hooks/sites.h"
#include "hooks/source_files.h"

namespace devsan::hooks {

namespace {

// What a layer makes when it is made, and what Module.to() makes of it, has no other history.
bool has_own_history(const trace::OperandRecord& weight) {
  const trace::LineageNode node = runtime.recorder->lineage(weight.lineage);
  const trace::Site site = runtime.recorder->site(node.site);
  const bool by_torch = runtime.recorder->string(site.innermost.file).find("/torch/nn/") != std::string_view::npos;
  return (node.how == trace::How::derived || node.how == trace::How::moved) && !by_torch;
}

bool puts_weight(const Instruction& one, std::string_view line) {
  if (loads_name(one, "setattr")) return line.find("Parameter(") != line.npos;
  return one.operation == Operation::store_attribute && is_name(one.operand, "data");
}

}  // namespace

void find_weight_put(const Inquiry& inquiry, std::size_t operand) {
  const Holding* owner = inquiry.search.owner(inquiry.identities[operand].object);
  if (owner == nullptr || !has_own_history(inquiry.operands[operand])) return;
  SourceFiles files;
  std::optional<trace::Position> found;
  for (const void* code : inquiry.own_code.code()) {
    const ByteCode byte_code(code);
    for (const Instruction& one : byte_code.instructions()) {
      if (!loads_name(one, "setattr") && one.operation != Operation::store_attribute) continue;
      const trace::Position at = position_of(code, one.offset);
      if (!puts_weight(one, files.line(at.file, at.line))) continue;
      if (found && (found->line != at.line || found->file != at.file)) return;
      found = at;
    }
  }
  if (found) inquiry.found.add(trace::EvidenceKind::weight_put_at, operand, *found, written(owner->link).substr(1));
}

}  // namespace devsan::hooks
