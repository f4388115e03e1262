#include <algorithm>
#include <array>

#include "report/program/positions.h"
#include "report/ranking/context.h"

namespace devsan::report::ranking {

using program::Field;
using program::Kind;
using program::Node;

namespace {

constexpr int kLinesBefore = 3;
constexpr int kLinesBehind = 3;
constexpr int kMostLines = 4;  // that are told apart

bool speaks_of_moving(std::string_view name) {
  constexpr std::array<std::string_view, 19> kWords{
      "to",      "cuda", "move",    "place", "prepare",  "transfer", "put",    "bring",    "send",    "onload",
      "offload", "load", "restore", "align", "dispatch", "_apply",   "upload", "download", "relocate"};
  return std::ranges::any_of(kWords, [&](std::string_view word) {
    return name.starts_with(word) || name.find("_" + std::string(word)) != std::string_view::npos;
  });
}

struct Count {
  int moves = 0;
  int devices = 0;
};

Count count(const Candidate& candidate, int first, int last) {
  Count found;
  for (int line = std::max(first, 1); line <= std::min(last, candidate.file->line_count()); ++line) {
    if (line == candidate.line) continue;
    const Traits said = traits_of_line(*candidate.file, line);
    found.moves += said.moves ? 1 : 0;
    found.devices += said.gives_device ? 1 : 0;
  }
  return found;
}

void set_moves(Candidate& candidate) {
  const program::Range own = candidate.function.range();
  const bool inside = candidate.function.is(Kind::FunctionDefinition);
  const int first = inside ? own.line : 1;
  const int last = inside ? own.end_line : candidate.file->line_count();
  const Count near =
      count(candidate, std::max(first, candidate.line - kLinesBefore), std::min(last, candidate.line + kLinesBehind));
  candidate[Feature::near_moves] = static_cast<float>(std::min(near.moves, kMostLines));
  candidate[Feature::near_devices] = static_cast<float>(std::min(near.devices, kMostLines));
  const Count all = count(candidate, first, last);
  candidate[Feature::function_moves] = static_cast<float>(std::min(all.moves, kMostLines));
  candidate[Feature::function_devices] = static_cast<float>(std::min(all.devices, kMostLines));
}

}  // namespace

void set_scope(const Context& context, Candidate& candidate) {
  const Node function = candidate.function;
  const std::string_view name = slice::name_of_function(function);
  const auto set = [&](Feature feature, bool value) { candidate[feature] = value ? 1 : 0; };
  set(Feature::in_failing_function, function == context.failing_function);
  const Node owner = program::class_of(candidate.statement);
  set(Feature::in_failing_class,
      owner && context.failing_function && owner == program::class_of(context.failing_function));
  set(Feature::at_module_level, function.is(Kind::Module));
  set(Feature::in_constructor, name == "__init__");
  set(Feature::in_mover, speaks_of_moving(name));
  set(Feature::in_forward,
      name == "forward" || name == "__call__" || name == "backward" || name == "step" || name == "loss");
  const Surroundings& around = context.around(function);
  candidate[Feature::knows_device] = static_cast<float>(around.knows_device);
  set(Feature::has_tensor, around.has_tensor);
  set(Feature::reads_data, around.reads_data);
  set(Feature::of_module, around.of_module);
  set(Feature::in_library, context.is_library(candidate.file->path()));
  set_moves(candidate);
  const slice::FileIndex* index = context.code.file(candidate.file->path());
  for (const std::string_view move : {"to", "cuda"}) {
    for (const Node call : index->calls(move)) {
      if (slice::body_of(call) != function) continue;
      if (call.line() > candidate.line) candidate[Feature::before_move] = 1;
      if (call.line() < candidate.line) candidate[Feature::after_move] = 1;
    }
  }
}

}  // namespace devsan::report::ranking
