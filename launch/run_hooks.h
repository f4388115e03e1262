// What `devsan run` does about hooks before the command starts.
#pragma once

#include <string>
#include <vector>

#include "launch/installation.h"
#include "trace/options.h"

namespace devsan::launch {

struct HooksForRun {
  // Why the simulated devices that were asked for cannot be had. Empty where they can, and where the command is one
  // that starts others, so that nobody knows its Python beforehand.
  std::string refusal;
  // Why the command itself cannot be traced; empty where it can, or may.
  std::string untraceable;
  // The key of a torch about whose hooks the user has been told something.
  std::string told;
};

// The first run with a torch compiles the hooks for it. Whatever goes wrong is told, and the command itself can run;
// with `simulated` devices that cannot be had it is not to.
HooksForRun prepare_hooks(const Installation& installation, const std::vector<std::string>& command,
                          const trace::Options& options, bool simulated);

}  // namespace devsan::launch
