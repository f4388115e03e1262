#include "launch/torch_probe.h"

#include <cstring>
#include <string_view>
#include <vector>

#include "launch/jobs.h"
#include "preload/hooks_cache.h"
#include "preload/torch_identity.h"

namespace devsan::launch {
namespace {

namespace fs = std::filesystem;

// Prints one line with a mark before it, since site customisation may print lines of its own.
constexpr char kProbe[] = R"(
import importlib.util, os, platform, sys, sysconfig
sys.path[:] = [entry for entry in sys.path if entry]
spec = importlib.util.find_spec("torch")
found = os.path.dirname(spec.origin) if spec and spec.origin else ""
free_threaded = "1" if sysconfig.get_config_var("Py_GIL_DISABLED") else "0"
musl = "1" if "musl" in (sysconfig.get_config_var("HOST_GNU_TYPE") or "") else "0"
fields = [platform.python_implementation(), free_threaded, musl, os.path.abspath(found) if found else ""]
os.write(1, b"\n\x01devsan\x00" + b"\x00".join(os.fsencode(field) for field in fields) + b"\x00\n")
)";

std::vector<std::string> fields_of(std::string_view output) {
  constexpr std::string_view kMark{
      "\n\x01"
      "devsan\0",
      9};
  std::vector<std::string> fields;
  const std::size_t start = output.find(kMark);
  if (start == std::string_view::npos) return fields;
  output.remove_prefix(start + kMark.size());
  for (std::size_t end = output.find('\0'); end != std::string_view::npos; end = output.find('\0')) {
    fields.emplace_back(output.substr(0, end));
    output.remove_prefix(end + 1);
  }
  return fields;
}

std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  const std::size_t start = text.rfind('\n');
  return start == std::string::npos ? text : text.substr(start + 1);
}

ProbeResult nothing(Probed what, const std::string& reason) {
  return {what, std::nullopt, reason};
}

ProbeResult no_answer(const std::string& python, const std::string& why) {
  return nothing(Probed::no_answer,
                 python + " is not a Python interpreter that works" + (why.empty() ? "" : ": " + why));
}

}  // namespace

ProbeResult probe_torch(const std::string& python) {
  const Captured answer = capture({python, "-c", kProbe});
  if (answer.start_error != 0) return no_answer(python, std::strerror(answer.start_error));
  const std::vector<std::string> fields = fields_of(answer.output);
  if (fields.size() != 4) return no_answer(python, last_line(answer.errors));
  if (fields[0] != "CPython")
    return nothing(Probed::other_python, python + " is " + fields[0] + "; devsan needs CPython");
  if (fields[1] == "1")
    return nothing(Probed::other_python, python + " is a free-threaded Python, which devsan does not support");
  if (fields[2] == "1") return nothing(Probed::other_python, python + " is linked with musl; devsan needs glibc");
  if (fields[3].empty()) return nothing(Probed::no_torch, python + " has no torch");
  Torch torch;
  torch.python = python;
  torch.directory = fields[3];
  std::error_code error;
  if (!fs::exists(torch.library(), error)) {
    return nothing(Probed::no_torch,
                   "the torch of " + python + " is incomplete: there is no " + torch.library().string());
  }
  const TorchIdentity identity = identify_torch(torch.library().c_str());
  torch.version = identity.version.view();
  if (is_older(torch.version.c_str(), kOldestTorchMajor, kOldestTorchMinor)) {
    return nothing(Probed::other_torch, "torch " + torch.version + " of " + python +
                                            " is too old: " + std::to_string(kOldestTorchMajor) + "." +
                                            std::to_string(kOldestTorchMinor) + " or later is needed");
  }
  if (identity.abi == CxxAbi::none || identity.abi == CxxAbi::unknown) {
    return nothing(Probed::other_torch, "cannot tell the C++ ABI of the torch of " + python + " (libc10.so)");
  }
  torch.cxx11_abi = identity.abi == CxxAbi::cxx11;
  return {Probed::torch, torch};
}

}  // namespace devsan::launch
