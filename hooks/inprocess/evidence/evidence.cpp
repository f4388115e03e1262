#include "hooks/inprocess/evidence/evidence.h"

#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/call_frames.h"
#include "hooks/inprocess/interpreter/byte_code.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/lineage_nodes.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"
#include "trace/function_names.h"
#include "trace/odd_operand.h"

namespace devsan::hooks {

namespace {

// Whether an operator at `site` was called on the line `at`, or in a statement that goes on to it.
bool called_at(const trace::Position& site, const trace::Position& at) noexcept {
  return site.file == at.file && site.function == at.function && site.line <= at.line && at.line <= site.end_line;
}

// The only one that called what made the operand, where that came to its device: `self.count, self.map = plan(n)`.
std::optional<trace::Position> among_calls(const Inquiry& inquiry, std::size_t operand,
                                           const std::vector<Candidate>& candidates) {
  constexpr int kMaxSteps = 8;
  trace::LineageNode node = runtime.recorder->lineage(inquiry.operands[operand].lineage);
  for (int steps = 0; node.how == trace::How::derived && steps < kMaxSteps; ++steps) {
    node = runtime.recorder->lineage(node.parent);
  }
  if (node.how != trace::How::created) return std::nullopt;
  const std::vector<trace::Position> calls = call_frames(runtime.recorder->site(node.site).user, node.calls);
  const Candidate* found = nullptr;
  for (const Candidate& one : candidates) {
    const auto is_call = [&](const trace::Position& call) { return same_line(call, one.at); };
    if (std::none_of(calls.begin() + 1, calls.end(), is_call)) continue;
    if (found != nullptr && !same_line(found->at, one.at)) return std::nullopt;
    found = &one;
  }
  return found != nullptr ? std::optional(found->at) : std::nullopt;
}

}  // namespace

bool same_line(const trace::Position& a, const trace::Position& b) noexcept {
  return same_function(a, b) && a.line == b.line;
}

bool same_function(const trace::Position& a, const trace::Position& b) noexcept {
  return a.file == b.file && a.function == b.function;
}

void EvidenceList::add(trace::EvidenceKind kind, std::size_t operand, const trace::Position& at,
                       std::string_view text) noexcept {
  if (count_ == records_.size() || operand >= trace::kWholeFinding) return;
  trace::EvidenceRecord record{};
  record.at = at;
  record.text = runtime.recorder->intern_string(text);
  record.kind = kind;
  record.operand = static_cast<std::uint8_t>(operand);
  for (const trace::EvidenceRecord& known : records()) {
    if (known.kind == kind && known.operand == record.operand && known.text == record.text && same_line(known.at, at)) {
      return;
    }
  }
  records_[count_++] = record;
}

std::optional<trace::Position> choose(const Inquiry& inquiry, std::size_t operand,
                                      const std::vector<Candidate>& candidates) {
  bool alone = !candidates.empty();
  for (const Candidate& one : candidates) alone = alone && one.certain && same_line(one.at, candidates.front().at);
  if (alone) return candidates.front().at;
  const trace::LineageNode made = runtime.recorder->lineage(inquiry.kept_history(operand));
  const trace::Position site = runtime.recorder->site(made.site).user;
  const Candidate* match = nullptr;
  for (const Candidate& one : candidates) {
    if (!called_at(site, one.at)) continue;
    if (match != nullptr && !same_line(match->at, one.at)) return std::nullopt;
    match = &one;
  }
  return match != nullptr ? std::optional(match->at) : among_calls(inquiry, operand, candidates);
}

std::optional<trace::Position> choose_giver(const Inquiry& inquiry, std::size_t operand,
                                            std::vector<Candidate> candidates) {
  SourceFiles files;
  std::erase_if(candidates, [&files](const Candidate& one) {
    return files.line(one.at.file, one.at.line).find("torch.") != std::string_view::npos;
  });
  return choose(inquiry, operand, candidates);
}

const void* Inquiry::viewed_by(std::size_t operand) const {
  const Sighting& sighting = search.sighting(operand);
  const OperandIdentity& known = identities[operand];
  const bool view = sighting.base && sighting.tensor != nullptr && known.tensor != nullptr &&
                    storage_of(sighting.tensor) == storage_of(known.tensor);
  if (view) return search.place(sighting.place).object;
  if (const void* kept = wrapped_object(operand)) return kept;
  // `bias = self.statics.bias.squeeze()`: a variable that is a view of a parameter or buffer.
  const void* owned = search.owner(known.object) == nullptr ? search.owned_over(known.tensor) : nullptr;
  return owned != nullptr ? owned : known.object;
}

const void* Inquiry::wrapped_object(std::size_t operand) const {
  const c10::TensorImpl* tensor = identities[operand].tensor;
  const c10::TensorImpl* wrapped = tensor != nullptr ? wrapped_tensor(tensor) : nullptr;
  return wrapped != nullptr ? search.object_of(wrapped) : nullptr;
}

trace::LineageId Inquiry::kept_history(std::size_t operand) const {
  const Sighting& sighting = search.sighting(operand);
  const bool temporary = sighting.base && sighting.tensor != nullptr && storage_of(sighting.tensor) != nullptr;
  return temporary ? tensor_history(sighting.tensor) : operands[operand].lineage;
}

bool Inquiry::is_for_numpy() const {
  return std::ranges::any_of(
      operands, [](const trace::OperandRecord& one) { return runtime.recorder->string(one.argument) == "numpy"; });
}

trace::Position position_at(trace::StringId file, int line, std::string_view function) {
  trace::Position position{};
  position.file = file;
  position.function = runtime.recorder->intern_string(function);
  position.line = position.end_line = line;
  position.column = position.end_column = -1;
  return position;
}

bool all_on_accelerators(const Inquiry& inquiry) {
  return std::ranges::all_of(inquiry.operands, [](const trace::OperandRecord& one) {
    const std::string_view device = runtime.recorder->string(runtime.recorder->device_name(one.device));
    return trace::classify_device(device) == trace::DeviceClass::accelerator;
  });
}

std::optional<trace::Position> loop_around(const trace::Position& at) {
  SourceFiles files;
  const SourceLines lines(files.whole(at.file));
  const int loop = enclosing_line(lines, at.line, "for ");
  if (loop == 0 || enclosing_line(lines, loop, "def ") != enclosing_line(lines, at.line, "def ")) return std::nullopt;
  return position_at(at.file, loop, qualified_function(lines, loop));
}

const void* code_at(const Inquiry& inquiry, const trace::Position& position) {
  const std::string_view function = trace::function_around(runtime.recorder->string(position.function));
  const std::string_view own_name = trace::own_name(function);
  for (const void* code : inquiry.own_code.code()) {
    if (!is_name(field<const void*>(code, code_members.name), own_name)) continue;
    const trace::Position start = position_of(code, 0);
    if (start.file == position.file && runtime.recorder->string(start.function) == function) return code;
  }
  return nullptr;
}

const void* only_function(const Inquiry& inquiry, std::string_view name) {
  const void* found = nullptr;
  for (const void* code : inquiry.own_code.code()) {
    if (!is_name(field<const void*>(code, code_members.name), name)) continue;
    if (found != nullptr) return nullptr;
    found = code;
  }
  return found;
}

std::optional<trace::Position> only_load(const Inquiry& inquiry, std::string_view name,
                                         const std::function<bool(std::string_view line)>& accepts) {
  SourceFiles files;
  std::optional<trace::Position> found;
  const bool only = visit_loads(inquiry.own_code.code(), name, [&](const trace::Position& at) {
    if (accepts && !accepts(files.line(at.file, at.line))) return true;
    if (found && !same_line(*found, at)) return false;
    found = at;
    return true;
  });
  return only ? found : std::nullopt;
}

bool visit_loads(const std::vector<const void*>& functions, std::string_view name,
                 const std::function<bool(const trace::Position& at)>& visit) {
  for (const void* code : functions) {
    if (!mentions_text(code, name)) continue;
    const ByteCode byte_code(code);
    for (const Instruction& one : byte_code.instructions()) {
      if (loads_name(one, name) && !visit(position_of(code, one.offset))) return false;
    }
  }
  return true;
}

}  // namespace devsan::hooks
