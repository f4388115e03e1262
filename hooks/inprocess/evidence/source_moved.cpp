// What was computed from a parameter or buffer before its module was moved stays where that was then.
#include <optional>
#include <string>
#include <string_view>

#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/provenance/large_page.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"
#include "trace/function_names.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxSteps = 10;

// Where a value was computed from what node `source` stands for; none where it was not.
std::optional<trace::Position> computed_from(const trace::OperandRecord& operand, trace::LineageId source) {
  trace::LineageId id = operand.lineage;
  for (int steps = 0; id != trace::LineageId::none && steps < kMaxSteps; ++steps) {
    const trace::LineageNode node = runtime.recorder->lineage(id);
    if (node.how != trace::How::derived || node.device != operand.device) break;
    if (node.parent == source) return runtime.recorder->site(node.site).user;
    id = node.parent;
  }
  return std::nullopt;
}

// `self.optimizers = [model.configure()]`, above `model.cuda()`: where the function that moves calls the one that
// computed, by its name.
void find_called_before(const Inquiry& inquiry, std::size_t operand, const trace::Position& computed,
                        const trace::Position& moved) {
  const std::string name(trace::own_name(runtime.recorder->string(computed.function)));
  if (same_function(computed, moved) || !is_identifier(name)) return;
  SourceFiles files;
  const SourceLines lines(files.whole(moved.file));
  const int definition = enclosing_line(lines, moved.line, "def ");
  for (int k = moved.line - 1; k > definition; --k) {
    if (is_blank(lines[k]) || enclosing_line(lines, k, "def ") != definition) continue;
    if (call_in(lines[k], name) == std::string_view::npos) continue;
    return inquiry.found.add(trace::EvidenceKind::called_before_move_at, operand,
                             position_at(moved.file, k, qualified_function(lines, k)), name);
  }
}

}  // namespace

void find_source_moved(const Inquiry& inquiry, std::size_t operand) {
  if (inquiry.owner_of(operand) != nullptr) return;
  std::optional<trace::Position> computed;
  trace::LineageNode moved{};
  std::string name;
  // Equal histories are one node: weights that one line made share it, and then it is not known which one it was.
  for (const auto& [tensor, holding] : inquiry.search.owned()) {
    const c10::TensorImpl* now = inquiry.search.tensor_at(tensor);
    const c10::StorageImpl* storage = now != nullptr ? storage_of(now) : nullptr;
    if (storage == nullptr) continue;
    const trace::LineageNode node = runtime.recorder->lineage(origin_table().find(storage));
    if (node.how != trace::How::moved || !inquiry.is_wanted(operand, node.device)) continue;
    const auto at = computed_from(inquiry.operands[operand], node.parent);
    if (!at) continue;
    if (computed && (moved.site != node.site || moved.parent != node.parent)) return;
    const std::uint32_t place = inquiry.search.find_place(holding.holder);
    name = computed || place == kNoPlace ? std::string() : inquiry.search.path_to(place) + written(holding.link);
    computed = at;
    moved = node;
  }
  if (!computed) return;
  inquiry.found.add(trace::EvidenceKind::computed_before_move, operand, *computed, name);
  inquiry.found.add(trace::EvidenceKind::source_moved_at, operand, runtime.recorder->site(moved.site).user,
                    runtime.recorder->string(runtime.recorder->device_name(moved.device)));
  find_called_before(inquiry, operand, *computed, runtime.recorder->site(moved.site).user);
}

}  // namespace devsan::hooks
