// `model, optimizer = accelerator.prepare(model, optimizer)`: a library has moved the model, and would move batches
// too, if it were given the loader.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "report/call_text.h"
#include "report/frames.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// A call that has a library place a model, and the one that has it wrap a loader.
struct Preparation {
  std::string_view placed_by;
  std::string_view wraps;
};
constexpr std::array<Preparation, 3> kPreparations = {{
    {".prepare(", "prepare"},          // Accelerate
    {".prepare_model(", "prepare"},    // Accelerate
    {".setup(", "setup_dataloaders"},  // Lightning Fabric
}};

const Preparation* preparation_in(const Frame& place) {
  const auto found = std::ranges::find_if(kPreparations, [&](const Preparation& one) {
    return place.statement().find(one.placed_by) != std::string::npos;
  });
  return found != kPreparations.end() ? &*found : nullptr;
}

// "accelerator" of `model = accelerator.prepare(model)`
std::string preparer(const Frame& place, const Preparation& by) {
  const std::string_view line = place.statement();
  const std::size_t end = line.find(by.placed_by);
  const std::size_t begin = line.find_last_of(" =(,", end);
  return std::string(line.substr(begin + 1, end - begin - 1));
}

}  // namespace

std::optional<Explanation> loader_not_prepared(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !pair->odd.on_cpu() || !on_accelerator(pair->wanted) || !was_never_moved(pair->odd)) return std::nullopt;
  const Evidence* loader = place_of(pair->odd, trace::EvidenceKind::drawn_loader_made_at, finding);
  const LineageStep* placed = newest_move_of(pair->wanted);
  if (loader == nullptr || placed == nullptr || placed->within.empty()) return std::nullopt;
  const Preparation* by = preparation_in(placed->at);
  if (by == nullptr || loader->at.statement().find(by->wraps) != std::string::npos) return std::nullopt;
  // One call that prepares all, behind the line that makes the loader, leaves that out.
  const bool left_out = same_function(placed->at, loader->at) && placed->at.line > loader->at.line;
  const Frame& place = left_out ? placed->at : loader->at;
  const std::string call = preparer(placed->at, *by) + "." + std::string(by->wraps) + "(loader)";
  return Explanation{
      cause_at(place, pair->odd,
               left_out ? "This line has a library place the model on " + pair->wanted.device + ". The loader that " +
                              mention(pair->odd) + " comes from, made in " + short_place(loader->at) +
                              ", is not given to it: nothing moves its batches."
                        : mention_first(pair->odd) + " comes from the loader that is made in this line. " +
                              short_place(placed->at) + " has a library place the model on " + pair->wanted.device +
                              "; the loader is not given to it, and nothing moves its batches."),
      Fix{place.file, place.line, "Have the loader prepared, too: `loader = " + call + "`; or move each batch."}};
}

}  // namespace devsan::report::why
