// Where torch.jit traced what the failing line runs. What a trace makes has no lines of Python, and is on the device of
// the example that it was traced with. The operators of a trace run without the interpreter, so this reads source.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"

namespace devsan::hooks {

namespace {

// The other things that run operators without lines of Python.
constexpr std::array<std::string_view, 2> kOthers = {"jit.script", "torch.ops"};

// What traces, behind `torch.jit.` or as `from torch.jit import trace` names it.
constexpr std::array<std::string_view, 2> kTracers = {"trace", "trace_module"};

// Whether a line traces. `imported` has the line that imports names from torch.jit; empty without one.
bool traces(std::string_view line, std::string_view imported) {
  const auto calls = [&](std::string_view tracer) {
    if (call_in(line, "jit." + std::string(tracer)) != line.npos) return true;
    const std::size_t at = has_word(imported, tracer) ? call_in(line, tracer) : line.npos;
    return at != line.npos && (at == 0 || line[at - 1] != '.');
  };
  return std::ranges::any_of(kTracers, calls);
}

// The only line that traces; 0 where there is none, or several, or where it may have been something else.
int only_trace(const SourceLines& lines) {
  constexpr std::string_view kImport = "from torch.jit import ";
  int found = 0;
  std::string imported;
  for (int k = 1; k <= lines.count(); ++k) {
    if (is_blank(lines[k])) continue;
    if (std::ranges::any_of(kOthers, [&](auto other) { return lines[k].find(other) != lines[k].npos; })) return 0;
    if (trimmed(lines[k]).starts_with(kImport)) imported = statement_at(lines, k).substr(kImport.size());
    if (!traces(lines[k], imported)) continue;
    if (found != 0) return 0;
    found = k;
  }
  return found;
}

}  // namespace

void find_trace(const trace::OperandRecord& operand, std::size_t index, trace::SiteId site, EvidenceList& found) {
  const bool made_here = operand.lineage != trace::LineageId::none && site != trace::SiteId::none &&
                         runtime.recorder->lineage(operand.lineage).site == site;
  if (!made_here) return;
  const trace::StringId file = runtime.recorder->site(site).user.file;
  SourceFiles files;
  const SourceLines lines(files.whole(file));
  const int traced = only_trace(lines);
  if (traced == 0) return;
  found.add(trace::EvidenceKind::traced_at, index, position_at(file, traced, qualified_function(lines, traced)), "");
}

}  // namespace devsan::hooks
