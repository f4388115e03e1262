// Where the program makes its generators. A generator has no history as tensors have; but where one line alone makes
// any, it is known which.
#include <string_view>

#include "hooks/byte_code.h"
#include "hooks/code_table.h"
#include "hooks/evidence.h"
#include "hooks/python_frames.h"
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

bool is_load(const Instruction& instruction) noexcept {
  return instruction.operation == Operation::load_attribute || instruction.operation == Operation::load_variable;
}

}  // namespace

void find_generator(const Inquiry& inquiry, std::size_t operand) {
  if ((inquiry.operands[operand].flags & trace::kGenerator) == 0) return;
  SourceFiles files;
  trace::Position found{};
  int lines = 0;
  for (const void* code : inquiry.own_code.code()) {
    if (!mentions_text(code, kType)) continue;
    for (const Instruction& one : ByteCode(code).instructions()) {
      if (!is_load(one) || !is_name(one.operand, kType)) continue;
      const trace::Position at = position_of(code, one.offset);
      if (!makes_generator(files.line(at.file, at.line)) || (lines > 0 && at.line == found.line)) continue;
      found = at;
      ++lines;
    }
  }
  if (lines == 1) inquiry.found.add(trace::EvidenceKind::generator_made_at, operand, found, "");
}

}  // namespace devsan::hooks
