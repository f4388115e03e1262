// Which hooks a torch gets, as far as they are there.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launch/installation.h"
#include "preload/hooks_choice.h"

namespace devsan::launch {

struct FoundHooks {
  HooksChoice choice;
  std::vector<std::string> complaints;  // one sentence each about what was passed over

  bool found() const { return choice.place != HooksPlace::none; }
  std::filesystem::path directory() const { return choice.directory.c_str(); }
};

// As libdevsan.so will choose in the process, without anything being made.
FoundHooks find_hooks(const Installation& installation, const std::filesystem::path& libtorch_cpu);

// "hooks: for torch 2.13.0+cpu of /usr/bin/python3: slot /opt/devsan/lib/devsan/hooks/2.13"; what `devsan run` would
// load here for `python3`. Never throws.
std::string describe_hooks();

}  // namespace devsan::launch
