#include "doctor/python/torch_build.h"

#include <algorithm>
#include <sstream>

#include "preload/mapped_file.h"

namespace devsan::doctor {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxListBytes = 512;

// The value of "name = 'text'" or "name: Optional[str] = 'text'"; empty for None.
std::string assigned(std::string_view source, std::string_view name) {
  for (std::size_t begin = 0; begin < source.size();) {
    const std::size_t end = std::min(source.find('\n', begin), source.size());
    const std::string_view line = source.substr(begin, end - begin);
    begin = end + 1;
    if (!line.starts_with(name) || line.size() == name.size()) continue;
    if (line[name.size()] != ' ' && line[name.size()] != ':' && line[name.size()] != '=') continue;
    const std::size_t open = line.find_first_of("'\"", line.find('='));
    if (open == std::string_view::npos) return {};
    return std::string(line.substr(open + 1, line.find(line[open], open + 1) - open - 1));
  }
  return {};
}

bool is_architecture(std::string_view word) {
  for (const std::string_view prefix : {"sm_", "compute_"}) {
    if (!word.starts_with(prefix)) continue;
    word.remove_prefix(prefix.size());
    if (word.ends_with('a') || word.ends_with('f')) word.remove_suffix(1);  // sm_90a
    return word.size() >= 2 && word.size() <= 3 && word.find_first_not_of("0123456789") == std::string_view::npos;
  }
  return false;
}

std::vector<std::string> list_of(std::string_view text) {
  std::vector<std::string> words;
  std::istringstream stream{std::string(text)};
  for (std::string word; stream >> word;) {
    if (!is_architecture(word)) return {};
    words.push_back(word);
  }
  return words;
}

}  // namespace

std::vector<std::string> architectures_in(std::string_view library) {
  std::vector<std::string> longest;
  constexpr std::string_view kFirst("\0sm_", 4);
  for (std::size_t at = library.find(kFirst); at != std::string_view::npos; at = library.find(kFirst, at + 1)) {
    const std::string_view rest = library.substr(at + 1, kMaxListBytes);
    std::vector<std::string> list = list_of(rest.substr(0, rest.find('\0')));
    if (list.size() > longest.size()) longest = std::move(list);
  }
  return longest;
}

std::optional<TorchBuild> read_torch_build(const std::vector<fs::path>& path, const Packages& packages) {
  for (const fs::path& folder : path) {
    std::error_code error;
    const fs::path directory = folder / "torch";
    if (!fs::exists(directory / "version.py", error)) continue;
    TorchBuild build;
    build.directory = directory;
    const MappedFile source((directory / "version.py").c_str());
    build.version = assigned(source.text(), "__version__");
    build.cuda = assigned(source.text(), "cuda");
    build.hip = assigned(source.text(), "hip");
    const MappedFile library((directory / "lib/libtorch_python.so").c_str());
    if (!build.cuda.empty()) build.architectures = architectures_in(library.text());
    const Package* package = packages.find("torch");
    if (package != nullptr && package->metadata.parent_path() == folder) {
      for (auto& [name, version] : exact_requirements(package->metadata)) {
        if (name.starts_with("nvidia-")) build.requirements.emplace(name, version);
      }
    }
    return build;
  }
  return std::nullopt;
}

}  // namespace devsan::doctor
