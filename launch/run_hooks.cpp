#include "launch/run_hooks.h"

#include <filesystem>
#include <optional>

#include "launch/build.h"
#include "launch/messages.h"
#include "launch/target_python.h"
#include "launch/torch_probe.h"
#include "preload/hooks_cache.h"
#include "preload/hooks_fit.h"

namespace devsan::launch {
namespace {

namespace fs = std::filesystem;

std::string key_of(const Torch& torch) {
  HooksLocation location{};
  return make_cache_key(torch.library().c_str(), &location) ? location.key : "";
}

std::string why_not_simulated(const fs::path& hooks) {
  return hooks.string() + " has hooks without simulated devices, which need torch " + std::to_string(kSimTorchMajor) +
         "." + std::to_string(kSimTorchMinor) + " or later";
}

// Of a folder that the user named.
std::string why_not_simulated_by(const std::string& hooks) {
  std::error_code error;
  if (!fs::exists(fs::path(hooks) / kHooksLibrary, error)) return "there is no " + hooks + "/" + kHooksLibrary;
  return has_simulation(hooks.c_str()) ? std::string() : why_not_simulated(hooks);
}

// Hooks for a torch that is there.
void provide(const Installation& installation, const Torch& torch, const Wanted& wanted, bool refuse,
             HooksForRun& result) {
  std::string trouble;
  try {
    const ProvidedHooks provided = ensure_hooks(installation, torch, wanted);
    if (provided.complained) result.told = key_of(torch);
    if (refuse && !has_simulation(provided.directory.c_str())) result.refusal = why_not_simulated(provided.directory);
    return;
  } catch (const Failure& failure) {
    trouble = failure.what();
  } catch (const fs::filesystem_error& failure) {
    trouble = failure.what();
  }
  if (refuse) {
    result.refusal = trouble;
    return;
  }
  result.told = key_of(torch);
  if (!wanted.quiet) warn(trouble);
}

}  // namespace

HooksForRun prepare_hooks(const Installation& installation, const std::vector<std::string>& command,
                          const trace::Options& options, bool simulated) {
  HooksForRun result;
  const std::optional<CertainPython> certain = find_certain_python(command);
  const bool refuse = simulated && certain;
  if (!options.hooks.empty()) {
    if (refuse) result.refusal = why_not_simulated_by(options.hooks);
    return result;
  }
  const std::optional<std::string> python = certain ? certain->path : find_python(command);
  if (!python) return result;
  const ProbeResult probed = probe_torch(*python);
  if (probed.torch) {
    provide(installation, *probed.torch, {options.sim > 0, false, options.quiet}, refuse, result);
    return result;
  }
  if (!certain || probed.what == Probed::no_answer) return result;
  // A script may start another Python, as conda does: what its own lacks says little.
  if (refuse && (!certain->by_script || probed.what == Probed::other_torch)) result.refusal = probed.reason;
  // Of what torch meets in the process that tells itself.
  if (!certain->by_script && probed.what == Probed::no_torch) result.untraceable = probed.reason;
  return result;
}

}  // namespace devsan::launch
