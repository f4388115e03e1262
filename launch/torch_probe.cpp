#include "launch/torch_probe.h"

#include <cstring>
#include <string_view>
#include <vector>

#include "launch/elf_file.h"
#include "launch/jobs.h"

namespace devsan::launch {
namespace {

namespace fs = std::filesystem;

// Prints one line with a mark before it, since site customisation may print lines of its own.
constexpr char kProbe[] = R"(
import importlib.util, os, platform, sys, sysconfig
sys.path[:] = [entry for entry in sys.path if entry]
spec = importlib.util.find_spec("torch")
found = os.path.dirname(spec.origin) if spec and spec.origin else ""
version = ""
try:
    with open(os.path.join(found, "version.py"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("__version__"):
                version = line.split("=")[1].strip().strip("'\"")
except OSError:
    pass
free_threaded = "1" if sysconfig.get_config_var("Py_GIL_DISABLED") else "0"
fields = [platform.python_implementation(), free_threaded, os.path.abspath(found) if found else "", version]
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

ProbeResult no_python(const std::string& python, const std::string& why) {
  return {std::nullopt, false, python + " is not a Python interpreter that works" + (why.empty() ? "" : ": " + why)};
}

}  // namespace

bool uses_cxx11_abi(const fs::path& libc10) {
  // c10::Error's constructors take a std::string in every torch; its type shows in the mangled name.
  const std::string names = ElfFile(libc10).symbol_names();
  constexpr std::string_view kConstructor = "_ZN3c105ErrorC";
  bool seen = false;
  for (std::size_t at = names.find(kConstructor); at != std::string::npos; at = names.find(kConstructor, at + 1)) {
    seen = true;
    const std::string_view name(names.c_str() + at);
    if (name.find("__cxx1112basic_string") != std::string_view::npos) return true;
  }
  return !seen;
}

ProbeResult probe_torch(const std::string& python) {
  const Captured answer = capture({python, "-c", kProbe});
  if (answer.start_error != 0) return no_python(python, std::strerror(answer.start_error));
  const std::vector<std::string> fields = fields_of(answer.output);
  if (fields.size() != 4) return no_python(python, last_line(answer.errors));
  if (fields[0] != "CPython") return {std::nullopt, true, python + " is " + fields[0] + "; devsan needs CPython"};
  if (fields[1] == "1")
    return {std::nullopt, true, python + " is a free-threaded Python, which devsan does not support"};
  if (fields[2].empty()) return {std::nullopt, true, python + " has no torch"};
  Torch torch;
  torch.python = python;
  torch.directory = fields[2];
  torch.version = fields[3];
  std::error_code error;
  if (!fs::exists(torch.library(), error)) {
    return {std::nullopt, true, "the torch of " + python + " is incomplete: there is no " + torch.library().string()};
  }
  torch.cxx11_abi = uses_cxx11_abi(torch.libraries() / "libc10.so");
  return {torch, true, {}};
}

}  // namespace devsan::launch
