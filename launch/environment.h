// The environment that a traced program gets.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/options.h"

namespace devsan::launch {

// A copy of an environment, to be changed and handed to exec.
class Environment {
 public:
  static Environment inherited();

  std::optional<std::string> get(std::string_view name) const;
  void set(std::string_view name, std::string_view value);
  std::vector<char*> for_exec();  // points into this object

 private:
  std::vector<std::string> entries_;
};

// LD_PRELOAD with `ours` first and the existing entries after it, in their order. Sanitizer runtimes stay in front of
// it: they refuse to start anywhere else. An entry for devsan that is there already is dropped.
std::string merge_preload(std::string_view existing, const std::string& ours);

// The options that `devsan run` was given on its command line.
struct RunFlags {
  std::optional<int> sim;
  std::optional<std::string> sim_memory;
  std::optional<std::string> out;
  std::optional<std::string> suppressions;
  std::optional<std::string> rules;  // in TOML: a process is given what is compiled from it
  bool sim_late_copies = false;
  bool sim_guard = false;
  bool halt = false;
  std::optional<int> hang_after;
  bool quiet = false;
  int stop_after = 0;  // optimizer steps; 0: as DEVSAN_OPTIONS says
};

// The user's own DEVSAN_OPTIONS with the flags laid over them. Paths end up absolute, since a program may change
// its directory before it starts another; `default_out` is used where neither names one.
trace::ParsedOptions merge_options(std::string_view existing, const RunFlags& flags, const std::string& default_out);

}  // namespace devsan::launch
