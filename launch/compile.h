// Compiles what depends on torch: the hooks' bridge to it with the generated wrappers, and the simulation. What of the
// hooks needs no torch comes as an archive from devsan's own build.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launch/installation.h"
#include "launch/messages.h"
#include "launch/torch_probe.h"

namespace devsan::launch {

// $CXX, or the first C++ compiler found. Throws Failure, naming what to install.
std::vector<std::string> find_compiler();

// Whether the simulation can be compiled for this torch.
bool can_be_simulated(const Torch& torch);

// Puts libdevsan_torch.so into the folder, or libdevsan_sim.so. Throw Failure with one sentence, or Interrupted.
void compile_hooks(const Installation& installation, const Torch& torch, const std::filesystem::path& folder,
                   Progress& progress);
void compile_simulation(const Installation& installation, const Torch& torch, const std::filesystem::path& folder,
                        Progress& progress);

}  // namespace devsan::launch
