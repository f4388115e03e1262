#include "launch/hooks.h"

#include <optional>

#include "launch/cache.h"
#include "launch/target_python.h"
#include "launch/torch_probe.h"
#include "preload/hooks_fit.h"

namespace devsan::launch {
namespace {

std::string hooks_of_python3() {
  const std::optional<std::string> python = find_program("python3");
  if (!python) return "none, for there is no python3 here";
  const ProbeResult probed = probe_torch(*python);
  if (!probed.torch) return "none, for " + probed.reason;
  const FoundHooks found = find_hooks(find_installation(), probed.torch->library());
  const std::string torch = "for torch " + probed.torch->version + " of " + *python + ": ";
  if (!found.found()) {
    const std::string why = why_unusable(found.choice.cached, found.choice.cache);
    return torch + (why.empty() ? "would be compiled at the first run" : why);
  }
  return torch + name_of(found.choice.place) + " " + found.directory().string() +
         (has_simulation(found.directory().c_str()) ? "" : " (without simulated devices)");
}

}  // namespace

FoundHooks find_hooks(const Installation& installation, const std::filesystem::path& libtorch_cpu) {
  FoundHooks found;
  const Complaints complaints{
      [](const char* sentence, void* list) { static_cast<std::vector<std::string>*>(list)->emplace_back(sentence); },
      &found.complaints};
  choose_hooks(libtorch_cpu.c_str(), installation.library.parent_path().c_str(), complaints, &found.choice);
  return found;
}

std::string describe_hooks() {
  try {
    return "hooks: " + hooks_of_python3();
  } catch (const std::exception& error) {
    return std::string("hooks: none, for ") + error.what();
  }
}

}  // namespace devsan::launch
