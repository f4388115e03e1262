// `devsan build`: compiles the hooks and the simulation against one torch, into the user's cache.
#pragma once

#include <filesystem>
#include <string>

#include "launch/installation.h"
#include "launch/torch_probe.h"

namespace devsan::launch {

struct BuildFlags {
  std::string python;       // path or name; empty for `python3`
  bool simulation = false;  // the simulated devices too
  std::string export_file;  // to put them into; empty for none
  std::string import_file;  // to take them from; empty for none
  bool force = false;
  bool quiet = false;
};

// The exit status of `devsan build`.
int build_command(const BuildFlags& flags);

struct Wanted {
  bool simulation = false;
  bool force = false;  // even what is there
  bool quiet = false;
};

struct ProvidedHooks {
  std::filesystem::path directory;
  bool complained = false;  // about others that were passed over
};

// The folder that holds the hooks for `torch`, and the simulation where it is wanted and can be had for this torch:
// what is there, or what is built now. Complaints go to stderr. Throws Failure with one sentence, or Interrupted.
ProvidedHooks ensure_hooks(const Installation& installation, const Torch& torch, const Wanted& wanted);

}  // namespace devsan::launch
