#include "launch/build.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <optional>

#include "launch/cache.h"
#include "launch/capacity.h"
#include "launch/compile.h"
#include "launch/messages.h"
#include "launch/target_python.h"

namespace devsan::launch {
namespace {

namespace fs = std::filesystem;

// Which of the two libraries are missing.
struct Missing {
  bool hooks = true;
  bool simulation = false;
};

Missing missing_of(const HooksLocation& location, HooksState state, const Torch& torch, const Wanted& wanted) {
  Missing missing;
  missing.hooks = wanted.force || state != HooksState::ready;
  std::error_code error;
  const bool simulated = fs::exists(fs::path(location.directory) / kSimLibrary, error);
  // Hooks are published with a folder of their own, in which the simulation that was there must not be missing.
  const bool wants = missing.hooks ? wanted.simulation || simulated : wanted.simulation && !simulated;
  missing.simulation = wants && can_be_simulated(torch);
  return missing;
}

const char* name_of(const Missing& missing) {
  if (!missing.simulation) return "the hooks";
  return missing.hooks ? "the hooks and the simulated devices" : "the simulated devices";
}

// Said before the wait. Compilers differ by half; nobody plans by it.
std::string expected_time(const Missing& missing, std::size_t slots) {
  constexpr std::size_t kHooksSeconds = 90;  // of one processor
  constexpr std::size_t kSimulationSeconds = 30;
  constexpr std::size_t kShortest = 30;  // the longest unit
  constexpr std::size_t kUnit = 10;
  const std::size_t work = (missing.hooks ? kHooksSeconds : 0) + (missing.simulation ? kSimulationSeconds : 0);
  const std::size_t seconds = std::max((work / slots + kUnit - 1) / kUnit * kUnit, kShortest);
  return "this takes some " + std::to_string(seconds) + " seconds on " + std::to_string(slots) +
         (slots == 1 ? " processor" : " processors");
}

long seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

fs::path ensure_hooks(const Installation& installation, const Torch& torch, const Wanted& wanted) {
  HooksLocation location;
  const auto look = [&] { return locate_hooks(torch.library().c_str(), &location); };
  const HooksState state = look();
  if (Missing missing = missing_of(location, state, torch, wanted); !missing.hooks && !missing.simulation) {
    return location.directory;
  }
  if (const std::string why = why_unusable(state, location); !why.empty()) throw Failure(why);
  find_compiler();
  prepare_cache(location);
  const auto start = std::chrono::steady_clock::now();
  Progress progress(wanted.quiet);
  const BuildLock lock(location, [&] { progress.start("another process is building the hooks; waiting for it"); });
  const Missing missing = missing_of(location, look(), torch, wanted);
  if (!missing.hooks && !missing.simulation) return location.directory;
  const std::string what = std::string(name_of(missing)) + " for torch " + torch.version;
  progress.start("building " + what + ", once; " + expected_time(missing, compiler_slots()));
  Staging staging(location);
  if (missing.hooks) compile_hooks(installation, torch, staging.path(), progress);
  if (missing.simulation) compile_simulation(installation, torch, staging.path(), progress);
  missing.hooks ? staging.publish() : staging.publish_file(kSimLibrary);
  progress.finish("built " + what + " in " + std::to_string(seconds_since(start)) + " s");
  return location.directory;
}

int build_command(const BuildFlags& flags) {
  const std::string named = flags.python.empty() ? "python3" : flags.python;
  const std::optional<std::string> python = find_program(named);
  if (!python) throw Failure("there is no program " + named);
  const ProbeResult probed = probe_torch(*python);
  if (!probed.torch) throw Failure(probed.reason);
  const Wanted wanted = {flags.simulation, flags.force, flags.quiet};
  std::cout << ensure_hooks(find_installation(), *probed.torch, wanted).string() << '\n';
  return 0;
}

}  // namespace devsan::launch
