// Where torch.jit traced what the failing line runs. What a trace makes has no lines of Python, and is on the device of
// the example that it was traced with. The operators of a trace run without the interpreter, so this reads source.
#include <algorithm>
#include <array>
#include <string_view>

#include "hooks/evidence/evidence.h"
#include "hooks/process/runtime.h"
#include "hooks/source/python_text.h"
#include "hooks/source/source_files.h"

namespace devsan::hooks {

namespace {

// The other things that run operators without lines of Python.
constexpr std::array<std::string_view, 2> kOthers = {"jit.script", "torch.ops"};

// The only line that traces; 0 where there is none, or several, or where it may have been something else.
int only_trace(const SourceLines& lines) {
  int found = 0;
  for (int k = 1; k <= lines.count(); ++k) {
    if (is_blank(lines[k])) continue;
    if (std::ranges::any_of(kOthers, [&](auto other) { return lines[k].find(other) != lines[k].npos; })) return 0;
    if (call_in(lines[k], "jit.trace") == std::string_view::npos) continue;
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
