// `devsan build`: compiles the hooks and the simulation against one torch, into the user's cache.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launch/installation.h"
#include "launch/torch_probe.h"

namespace devsan::launch {

struct BuildFlags {
  std::string python;  // path or name; empty for `python3`
  bool force = false;
  bool quiet = false;
};

// The exit status of `devsan build`.
int build_command(const BuildFlags& flags);

// The folder that holds the hooks for `torch`, built now unless it is there already. Throws Failure with one sentence,
// or Interrupted.
std::filesystem::path ensure_hooks(const Installation& installation, const Torch& torch, bool force, bool quiet);

// $CXX, or the first C++ compiler found. Throws Failure, naming what to install.
std::vector<std::string> find_compiler();

// What g++ has to be told for one source of the hooks.
std::vector<std::string> compile_flags(const Installation& installation, const Torch& torch,
                                       const std::filesystem::path& generated);

}  // namespace devsan::launch
