// Where the program makes its generators. A generator has no history as tensors have; but where one line alone makes
// any, it is known which.
#include <string_view>

#include "hooks/evidence.h"

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

}  // namespace

void find_generator(const Inquiry& inquiry, std::size_t operand) {
  if ((inquiry.operands[operand].flags & trace::kGenerator) == 0) return;
  const auto found = only_load(inquiry, "Generator", makes_generator);
  if (found) inquiry.found.add(trace::EvidenceKind::generator_made_at, operand, *found, "");
}

}  // namespace devsan::hooks
