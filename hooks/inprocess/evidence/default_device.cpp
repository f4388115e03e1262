// Where the program sets a default device, for what a factory made there without being told.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/source/python_moves.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxSteps = 10;

// A mode of torch's own gives the factory the device: it runs between the program's line and the operator.
constexpr std::string_view kMode = "/torch/utils/_device.py";

// A generator that somebody else made for the CPU, beside the default device.
bool meets_default(const Inquiry& inquiry, std::size_t operand) {
  const std::string_view file = runtime.recorder->string(runtime.recorder->site(inquiry.site).innermost.file);
  return (inquiry.operands[operand].flags & trace::kGenerator) != 0 && file.ends_with(kMode);
}

// Where an operand's value begins, on its device; none where it was brought there.
std::optional<trace::Site> made_at(const trace::OperandRecord& operand) {
  trace::LineageNode node = runtime.recorder->lineage(operand.lineage);
  for (int steps = 0; node.how == trace::How::derived && steps < kMaxSteps; ++steps) {
    node = runtime.recorder->lineage(node.parent);
  }
  if (node.how != trace::How::created || node.device != operand.device) return std::nullopt;
  return runtime.recorder->site(node.site);
}

bool made_by_default(const trace::OperandRecord& operand) {
  const auto site = made_at(operand);
  return site && runtime.recorder->string(site->innermost.file).ends_with(kMode);
}

bool clears(std::string_view line) {
  return line.find("set_default_device(None)") != line.npos;
}

// Made without a default device, where another operand was made on one: the only line that has taken it away.
void find_cleared(const Inquiry& inquiry, std::size_t operand) {
  if (!made_at(inquiry.operands[operand]) || !std::ranges::any_of(inquiry.operands, made_by_default)) return;
  const auto found = only_load(inquiry, "set_default_device", clears);
  if (found) inquiry.found.add(trace::EvidenceKind::default_device_cleared_at, operand, *found, "");
}

// `with torch.device("cuda"):`
bool enters_device(std::string_view line) {
  const std::string_view text = trimmed(line);
  return text.starts_with("with ") && call_in(text, "torch.device") != text.npos;
}

// `DataLoader(data, shuffle=True)`, or the first of its lines; one that is given a generator draws from that.
bool shuffles(std::string_view line) {
  constexpr std::string_view kName = "DataLoader";
  const std::size_t call = call_in(line, kName);
  if (call == line.npos || line.find("generator=", call) != line.npos) return false;
  return line.find("shuffle=True") != line.npos || closing_of(line, line.find('(', call)) == line.npos;
}

// Its sampler makes a generator for the CPU, and draws on the default device.
void find_loader(const Inquiry& inquiry, std::size_t operand) {
  const auto found = only_load(inquiry, "DataLoader", shuffles);
  if (!found) return;
  SourceFiles files;
  const std::string moved = first_move_to_accelerator(SourceLines(files.whole(found->file)));
  inquiry.found.add(trace::EvidenceKind::loader_made_at, operand, *found, moved);
}

}  // namespace

void find_default_device(const Inquiry& inquiry, std::size_t operand) {
  const bool by_default = made_by_default(inquiry.operands[operand]);
  if (!by_default) find_cleared(inquiry, operand);
  if (!by_default && !meets_default(inquiry, operand)) return;
  const auto found = only_load(inquiry, "set_default_device");
  if (found) inquiry.found.add(trace::EvidenceKind::default_device_at, operand, *found, "");
  const auto block = found ? std::nullopt : only_load(inquiry, "device", enters_device);
  if (block) inquiry.found.add(trace::EvidenceKind::default_device_block_at, operand, *block, "");
  if (!by_default) find_loader(inquiry, operand);
}

}  // namespace devsan::hooks
