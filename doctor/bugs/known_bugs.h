// Releases of libraries with known device bugs: known_bugs.toml, which the program carries.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "doctor/versions/pep440.h"

namespace devsan::doctor {

// What a DeepSpeed config must say for a bug to show: "stage:3", "stage:1-2", "offload_optimizer:cpu",
// "offload_param:cpu", "offload:any", "overlap_comm:true", "bf16:true". All of a bug's conditions must hold.
using Condition = std::string;

struct KnownBug {
  std::string library;
  std::string affected;  // as written: ">=0.15.4,<0.16.2"
  VersionRange range;
  std::string needs;    // in words; empty where the release is bad for everyone
  std::string symptom;  // one sentence
  std::string cure;
  std::string source;           // a public thread
  bool certain = false;         // the thread names the versions, or their sources were read
  std::vector<Condition> when;  // `needs`, as far as a DeepSpeed config can tell; empty where it cannot
  bool enough = false;          // a config that fulfils them brings the bug about
};

// Throws std::runtime_error with line and column where the text is not such a file.
std::vector<KnownBug> parse_known_bugs(std::string_view toml);

// Those that the program carries.
const std::vector<KnownBug>& known_bugs();

}  // namespace devsan::doctor
