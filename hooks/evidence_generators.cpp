// What has no history, but comes from the only line of the program that makes its like: generators, and traces.
#include <optional>
#include <string_view>

#include "hooks/byte_code.h"
#include "hooks/code_table.h"
#include "hooks/evidence.h"
#include "hooks/python_frames.h"
#include "hooks/runtime.h"
#include "hooks/sites.h"
#include "hooks/source_files.h"

namespace devsan::hooks {

namespace {

constexpr std::string_view kType = "Generator";

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

bool is_load(const Instruction& instruction, std::string_view name) noexcept {
  const bool load =
      instruction.operation == Operation::load_attribute || instruction.operation == Operation::load_variable;
  return load && is_name(instruction.operand, name);
}

// The only line of the program where `accept` takes an instruction that `name` is loaded by.
template <class Accept>
std::optional<trace::Position> only_line(const Inquiry& inquiry, std::string_view name, const Accept& accept) {
  std::optional<trace::Position> found;
  for (const void* code : inquiry.own_code.code()) {
    if (!mentions_text(code, name)) continue;
    const ByteCode byte_code(code);
    const auto& all = byte_code.instructions();
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (!is_load(all[k], name)) continue;
      const trace::Position at = position_of(code, all[k].offset);
      if (!accept(all, k, at)) continue;
      if (found && (found->line != at.line || found->file != at.file)) return std::nullopt;
      found = at;
    }
  }
  return found;
}

bool is_made_by_failing_call(const Inquiry& inquiry, std::size_t operand) {
  const trace::LineageId lineage = inquiry.operands[operand].lineage;
  return lineage != trace::LineageId::none && runtime.recorder->lineage(lineage).site == inquiry.site;
}

}  // namespace

void find_trace(const Inquiry& inquiry, std::size_t operand) {
  if (!is_made_by_failing_call(inquiry, operand)) return;
  const auto in_jit = [](const auto& all, std::size_t k, const trace::Position&) {
    return k > 0 && is_load(all[k - 1], "jit");
  };
  if (only_line(inquiry, "script", in_jit)) return;
  if (const auto at = only_line(inquiry, "trace", in_jit)) {
    inquiry.found.add(trace::EvidenceKind::traced_at, operand, *at, "");
  }
}

void find_generator(const Inquiry& inquiry, std::size_t operand) {
  if ((inquiry.operands[operand].flags & trace::kGenerator) == 0) return;
  SourceFiles files;
  const auto in_call = [&files](const auto&, std::size_t, const trace::Position& at) {
    return makes_generator(files.line(at.file, at.line));
  };
  if (const auto at = only_line(inquiry, kType, in_call)) {
    inquiry.found.add(trace::EvidenceKind::generator_made_at, operand, *at, "");
  }
}

}  // namespace devsan::hooks
