#include "launch/build.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <optional>

#include "launch/build_lock.h"
#include "launch/cache.h"
#include "launch/capacity.h"
#include "launch/compile.h"
#include "launch/exchange_file.h"
#include "launch/hooks.h"
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

// Where hooks for this torch belong in the cache, which is there and can be written then.
HooksLocation location_to_write(const Torch& torch, bool quiet) {
  HooksLocation location;
  const HooksState state = locate_hooks(torch.library().c_str(), &location);
  if (state != HooksState::no_home) {
    if (const std::string why = why_unusable(state, location); !why.empty()) throw Failure(why);
  }
  const std::string moved = prepare_cache(location);
  if (!moved.empty() && !quiet) warn(moved);
  return location;
}

fs::path make_hooks(const Installation& installation, const Torch& torch, const Wanted& wanted) {
  find_compiler();
  HooksLocation location = location_to_write(torch, wanted.quiet);
  const auto start = std::chrono::steady_clock::now();
  Progress progress(wanted.quiet);
  const BuildLock lock(location, [&] { progress.start("another process is building the hooks; waiting for it"); });
  const HooksState state = look_in_cache(std::string(location.root).c_str(), &location);
  const Missing missing = missing_of(location, state, torch, wanted);
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

// What is not in the cache is complete: whoever put it there has decided whether devices can be simulated.
bool is_enough(const FoundHooks& found, const Torch& torch, const Wanted& wanted) {
  if (!found.found() || wanted.force) return false;
  if (found.choice.place != HooksPlace::cache) return true;
  return !missing_of(found.choice.cache, found.choice.cached, torch, wanted).simulation;
}

Torch torch_of(const std::string& named) {
  const std::optional<std::string> python = find_program(named);
  if (!python) throw Failure("there is no program " + named);
  const ProbeResult probed = probe_torch(*python);
  if (!probed.torch) throw Failure(probed.reason);
  return *probed.torch;
}

std::string cache_key(const Torch& torch) {
  HooksLocation location{};
  if (!make_cache_key(torch.library().c_str(), &location)) {
    throw Failure(why_unusable(HooksState::no_build_id, location));
  }
  return location.key;
}

fs::path import_hooks(const Torch& torch, const BuildFlags& flags) {
  const ExchangeFile file = read_exchange_file(flags.import_file);
  if (file.key != cache_key(torch)) {
    throw Failure(flags.import_file + " holds hooks of another devsan or for another torch (" + file.torch +
                  "), not for torch " + torch.version + " of " + torch.python);
  }
  const HooksLocation location = location_to_write(torch, flags.quiet);
  const BuildLock lock(location, [] {});
  Staging staging(location);
  write_libraries(file, staging.path());
  staging.publish();
  return location.directory;
}

}  // namespace

ProvidedHooks ensure_hooks(const Installation& installation, const Torch& torch, const Wanted& wanted) {
  const FoundHooks found = find_hooks(installation, torch.library());
  for (const std::string& complaint : found.complaints) {
    if (!wanted.quiet) warn(complaint);
  }
  const bool complained = !found.complaints.empty();
  if (is_enough(found, torch, wanted)) return {found.directory(), complained};
  return {make_hooks(installation, torch, wanted), complained};
}

int build_command(const BuildFlags& flags) {
  const Torch torch = torch_of(flags.python.empty() ? "python3" : flags.python);
  if (flags.simulation && !flags.quiet && !can_be_simulated(torch)) {
    warn("torch " + torch.version + " gets hooks alone: simulated devices need torch " +
         std::to_string(kSimTorchMajor) + "." + std::to_string(kSimTorchMinor) + " or later");
  }
  if (!flags.import_file.empty()) {
    std::cout << import_hooks(torch, flags).string() << '\n';
    return 0;
  }
  const Wanted wanted = {flags.simulation, flags.force, flags.quiet};
  const fs::path directory = ensure_hooks(find_installation(), torch, wanted).directory;
  if (!flags.export_file.empty()) write_exchange_file(flags.export_file, directory, cache_key(torch), torch.version);
  std::cout << directory.string() << '\n';
  return 0;
}

}  // namespace devsan::launch
