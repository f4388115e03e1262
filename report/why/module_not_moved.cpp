// Parameters and buffers move with their module. One that stayed behind belongs to a module that `.to()` never reached:
// not registered in its parent (kept in a plain list or dict), or made and used apart from the model, as a loss is.
#include <algorithm>

#include "report/operands.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> module_not_moved(const Finding& finding) {
  const auto stayed = std::ranges::find_if(finding.operands, [](const Operand& operand) {
    const bool weight = operand.is == trace::NameKind::parameter || operand.is == trace::NameKind::buffer;
    return operand.odd && weight && operand.on_cpu() && !was_moved(operand);
  });
  if (stayed == finding.operands.end() || !finding.where) return std::nullopt;
  const Operand* tensor = counterpart_of(*stayed, finding.operands);
  if (tensor == nullptr) return std::nullopt;

  const Frame* place = &*finding.where;
  if (!stayed->lineage.empty() && !stayed->lineage.back().at.file.empty()) place = &stayed->lineage.back().at;
  return Explanation{std::nullopt,
                     Fix{place->file, place->line,
                         mention_first(*stayed) + " is a " + std::string(name_of(stayed->is)) +
                             " on the CPU: nothing ever moved it. Move the module that owns it with `.to('" +
                             tensor->device + "')`, or register that module in one that is moved " +
                             "(`nn.ModuleList` and `nn.ModuleDict` instead of a list or dict)."}};
}

}  // namespace devsan::report::why
