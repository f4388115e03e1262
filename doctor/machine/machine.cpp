#include "doctor/machine/machine.h"

#include <linux/capability.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include "doctor/machine/control_group.h"

namespace devsan::doctor {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFileBytes = 1 << 16;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::string text(kMaxFileBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return text;
}

// "MemTotal:       16384 kB"
std::uint64_t kilobytes_after(const std::string& text, const std::string& name) {
  std::istringstream words(text);
  for (std::string line; std::getline(words, line);) {
    if (!line.starts_with(name)) continue;
    std::uint64_t value = 0;
    std::istringstream(line.substr(name.size())) >> value;
    return value * 1024;
  }
  return 0;
}

// "Max locked memory         8388608              8388608              bytes": the soft limit is what holds.
std::optional<Limit> limit_after(const std::string& text, const std::string& name) {
  const std::size_t at = text.find(name);
  if (at == std::string::npos) return std::nullopt;
  std::istringstream words(text.substr(at + name.size()));
  std::string soft;
  if (!(words >> soft)) return std::nullopt;
  if (soft == "unlimited") return Limit{true, 0};
  Limit limit;
  const auto [end, error] = std::from_chars(soft.data(), soft.data() + soft.size(), limit.value);
  return error == std::errc() ? std::optional(limit) : std::nullopt;
}

// "CapEff:\t000001ffffffffff", in /proc/self/status.
bool has_capability(const std::string& status, int number) {
  constexpr std::string_view kName = "CapEff:";
  const std::size_t at = status.find(kName);
  if (at == std::string::npos) return false;
  const std::uint64_t set = std::strtoull(status.c_str() + at + kName.size(), nullptr, 16);
  return (set >> number & 1) != 0;
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 …"; the open modules say "… for x86_64 535…".
std::string module_version_in(const std::string& text) {
  std::istringstream line(text.substr(0, text.find('\n')));
  for (std::string word; line >> word;) {
    const bool digits = !word.empty() && word.find_first_not_of("0123456789.") == std::string::npos;
    if (digits && std::ranges::count(word, '.') >= 1) return word;
  }
  return {};
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

int count_device_files(const fs::path& folder) {
  int count = 0;
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end; file.increment(error)) {
    const std::string name = file->path().filename().string();
    constexpr std::string_view kPrefix = "nvidia";
    if (name.starts_with(kPrefix) && name.size() > kPrefix.size() &&
        name.find_first_not_of("0123456789", kPrefix.size()) == std::string::npos) {
      ++count;
    }
  }
  return count;
}

std::vector<std::string> cuda_libraries_in(const fs::path& root) {
  std::vector<std::string> found;
  for (const char* folder :
       {"usr/lib/wsl/lib", "usr/lib/x86_64-linux-gnu", "usr/lib64", "usr/lib", "usr/local/nvidia/lib64"}) {
    const fs::path file = root / folder / "libcuda.so.1";
    if (is_there(file)) found.push_back("/" + (fs::path(folder) / "libcuda.so.1").string());
  }
  return found;
}

// "CUDA Version 11.0.1" of old toolkits, or "cuda" : { … "version" : "12.4.1" } of newer ones.
std::string toolkit_version(const fs::path& folder) {
  std::string text = text_of(folder / "version.json");
  std::size_t at = text.find("\"cuda\"");
  if (at != std::string::npos) at = text.find("\"version\"", at);
  if (at == std::string::npos) {
    text = text_of(folder / "version.txt");
    at = text.find("CUDA Version");
  }
  if (at == std::string::npos) return {};
  const std::size_t begin = text.find_first_of("0123456789", at);
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_first_not_of("0123456789.", begin) - begin);
}

std::vector<std::string> toolkits_in(const fs::path& root) {
  std::vector<std::string> versions;
  const std::string first = toolkit_version(root / "usr/local/cuda");
  if (!first.empty()) versions.push_back(first);
  std::error_code error;
  for (fs::directory_iterator file(root / "usr/local", error), end; !error && file != end; file.increment(error)) {
    if (!file->path().filename().string().starts_with("cuda-")) continue;
    const std::string version = toolkit_version(file->path());
    if (!version.empty() && std::ranges::find(versions, version) == versions.end()) versions.push_back(version);
  }
  return versions;
}

void read_memory(const fs::path& root, Machine& machine) {
  const std::string text = text_of(root / "proc/meminfo");
  machine.memory_total = kilobytes_after(text, "MemTotal:");
  machine.memory_available = kilobytes_after(text, "MemAvailable:");
  if (const std::optional<GroupMemory> group = read_group_memory(root)) {
    // A limit above what the machine has is none.
    if (machine.memory_total == 0 || group->limit < machine.memory_total) {
      machine.group_limit = group->limit;
      machine.group_left = group->left;
      machine.group_version = group->version;
    }
  }
}

}  // namespace

std::uint64_t Machine::memory_left() const {
  return group_limit ? std::min(memory_available, group_left) : memory_available;
}

Machine read_machine(const fs::path& root) {
  Machine machine;
  machine.kernel = text_of(root / "proc/sys/kernel/osrelease");
  machine.kernel.resize(std::min(machine.kernel.find('\n'), machine.kernel.size()));
  machine.wsl2 = machine.kernel.find("microsoft-standard") != std::string::npos ||
                 machine.kernel.find("WSL2") != std::string::npos;
  machine.container = is_there(root / ".dockerenv") || is_there(root / "run/.containerenv") ||
                      text_of(root / "proc/self/cgroup").find("kubepods") != std::string::npos;
  read_memory(root, machine);
  const std::string limits = text_of(root / "proc/self/limits");
  machine.locked_memory = limit_after(limits, "Max locked memory");
  if (machine.locked_memory && has_capability(text_of(root / "proc/self/status"), CAP_IPC_LOCK)) {
    machine.locked_memory->unlimited = true;
  }
  machine.open_files = limit_after(limits, "Max open files");
  struct statvfs shared {};
  if (statvfs((root / "dev/shm").c_str(), &shared) == 0) {
    machine.shared_memory = std::uint64_t{shared.f_blocks} * shared.f_frsize;
  }
  machine.module_version = module_version_in(text_of(root / "proc/driver/nvidia/version"));
  machine.device_files = count_device_files(root / "dev");
  machine.dxg = is_there(root / "dev/dxg");
  machine.cuda_libraries = cuda_libraries_in(root);
  machine.toolkits = toolkits_in(root);
  return machine;
}

}  // namespace devsan::doctor
