// A module that is a copy of another one: `self.target = copy.deepcopy(self.net)`, where that has not been moved
// either.
#include <optional>
#include <string>
#include <string_view>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/module_weights.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"
#include "trace/odd_operand.h"

namespace devsan::hooks {

namespace {

// "self.net" of `self.target = copy.deepcopy(self.net).eval()`.
std::string copied_in(std::string_view statement) {
  const std::size_t call = call_in(statement, "deepcopy");
  const std::size_t open = call != statement.npos ? statement.find('(', call) : call;
  const auto arguments = open != statement.npos ? arguments_at(statement, open) : std::nullopt;
  return arguments && !arguments->empty() ? arguments->front() : std::string();
}

// Where a value was cloned by a copy of what holds it; none where it was not.
std::optional<trace::Position> cloned_at(const trace::OperandRecord& operand) {
  const trace::LineageNode node = runtime.recorder->lineage(operand.lineage);
  const std::string_view op = runtime.recorder->string(runtime.recorder->operator_name(node.op));
  if (node.how != trace::How::derived || trace::operator_base_name(op) != "clone") return std::nullopt;
  return runtime.recorder->site(node.site).user;
}

}  // namespace

// `module`: the outermost one around the operand.
void find_module_copy(const Inquiry& inquiry, std::size_t operand, const void* module) {
  const auto cloned = cloned_at(inquiry.operands[operand]);
  if (!cloned) return;
  SourceFiles files;
  const std::string original = copied_in(statement_at(SourceLines(files.whole(cloned->file)), cloned->line));
  if (!original.starts_with("self.") || !is_identifier(original.substr(5))) return;
  for (const Holding& holding : inquiry.search.holdings_of(module)) {
    if (holding.link.kind != LinkKind::attribute) continue;
    const std::string attribute = original.substr(4);
    WrittenLink link(attribute);
    visit_links(const_cast<void*>(holding.holder), link);
    if (link.object() == nullptr || !is_torch_module(link.object())) continue;
    const Weights weights(inquiry.search, link.object());
    if (weights.only() != std::optional(inquiry.operands[operand].device)) continue;
    const auto at = attribute_store(inquiry, operand, holding.holder, link.found().name);
    if (at && !same_line(*at, *cloned))
      inquiry.found.add(trace::EvidenceKind::copy_of_module_at, operand, *at, original);
    return;
  }
}

}  // namespace devsan::hooks
