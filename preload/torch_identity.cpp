#include "preload/torch_identity.h"

#include <cstdlib>

#include "preload/elf_file.h"
#include "preload/mapped_file.h"
#include "preload/path_text.h"

namespace devsan {
namespace {

// "__version__ = '2.13.0+cpu'", perhaps with a type before the sign.
std::string_view quoted_value(std::string_view line) noexcept {
  const std::size_t sign = line.find('=');
  if (sign == std::string_view::npos) return {};
  const std::size_t open = line.find_first_of("'\"", sign);
  if (open == std::string_view::npos) return {};
  const std::size_t close = line.find(line[open], open + 1);
  return close == std::string_view::npos ? std::string_view() : line.substr(open + 1, close - open - 1);
}

// `name` alone, and not as the start of a longer one.
bool assigns(std::string_view line, std::string_view name) noexcept {
  return line.starts_with(name) && line.size() > name.size() &&
         (line[name.size()] == ' ' || line[name.size()] == '=' || line[name.size()] == ':');
}

void read_version_file(const char* path, TorchIdentity* identity) noexcept {
  const MappedFile file(path);
  std::string_view text = file.text();
  while (!text.empty()) {
    const std::string_view line = take_line(&text);
    if (assigns(line, "__version__") && identity->version.empty()) identity->version.append(quoted_value(line));
    if (assigns(line, "git_version") && identity->git_version.empty()) {
      identity->git_version.append(quoted_value(line));
    }
  }
}

}  // namespace

CxxAbi cxx_abi_of(const char* libc10) noexcept {
  // c10::Error's constructors take a std::string in every torch; its type shows in the mangled name.
  constexpr std::string_view kConstructor = "_ZN3c105ErrorC";
  const ElfFile library(libc10);
  if (!library.sound()) return CxxAbi::none;
  const std::string_view names = library.symbol_names();
  CxxAbi abi = CxxAbi::unknown;
  for (std::size_t at = names.find(kConstructor); at != std::string_view::npos; at = names.find(kConstructor, at + 1)) {
    const std::string_view name(&names[at]);
    if (name.find("__cxx1112basic_string") != std::string_view::npos) return CxxAbi::cxx11;
    // "Ss" is the old std::string.
    if (name.find("Ss") != std::string_view::npos) abi = CxxAbi::pre_cxx11;
  }
  return abi;
}

TorchIdentity identify_torch(const char* libtorch_cpu) noexcept {
  TorchIdentity identity;
  const FixedPath libraries = parent_path(libtorch_cpu, 1);
  FixedPath version_file = parent_path(libtorch_cpu, 2);
  read_version_file(version_file.append("/version.py").c_str(), &identity);
  FixedPath libc10(libraries.view());
  identity.abi = cxx_abi_of(libc10.append("/libc10.so").c_str());
  return identity;
}

const char* name_of(CxxAbi abi) noexcept {
  switch (abi) {
    case CxxAbi::pre_cxx11:
      return "pre-cxx11";
    case CxxAbi::cxx11:
      return "cxx11";
    case CxxAbi::none:
    case CxxAbi::unknown:
      break;
  }
  return "unknown";
}

bool is_older(const char* version, int major, int minor) noexcept {
  char* rest = nullptr;
  const long own_major = std::strtol(version, &rest, 10);
  if (rest == version || *rest != '.') return false;
  const char* after_dot = rest + 1;
  const long own_minor = std::strtol(after_dot, &rest, 10);
  if (rest == after_dot) return false;
  return own_major < major || (own_major == major && own_minor < minor);
}

}  // namespace devsan
