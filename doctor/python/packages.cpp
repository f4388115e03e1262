#include "doctor/python/packages.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <optional>

#include "doctor/versions/pep440.h"

namespace devsan::doctor {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxMetadataBytes = 1 << 20;

// "accelerate-1.1.0.dist-info", "pkg-1.0-py3.11.egg-info": the name and the version.
std::optional<std::pair<std::string, std::string>> name_and_version(std::string stem) {
  const bool egg = stem.ends_with(".egg-info");
  if (!egg && !stem.ends_with(".dist-info")) return std::nullopt;
  stem.resize(stem.size() - (egg ? std::string_view(".egg-info") : std::string_view(".dist-info")).size());
  std::size_t dash = stem.rfind('-');
  if (egg && dash != std::string::npos && stem.compare(dash, 3, "-py") == 0) {
    stem.resize(dash);
    dash = stem.rfind('-');
  }
  if (dash == std::string::npos || !parse_version(stem.substr(dash + 1))) return std::nullopt;
  return std::pair(stem.substr(0, dash), stem.substr(dash + 1));
}

std::string first_lines(const fs::path& path) {
  std::ifstream file(path);
  std::string text(kMaxMetadataBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return text.substr(0, text.find("\n\n"));
}

std::string without_blanks(std::string_view text) {
  std::string kept;
  for (const char c : text) {
    if (std::isspace(static_cast<unsigned char>(c)) == 0 && c != '(' && c != ')') kept += c;
  }
  return kept;
}

// "nvidia-nccl-cu12 (==2.21.5) ; platform_system == "Linux"": a name and a version where they are exact.
std::optional<std::pair<std::string, std::string>> exact_requirement(std::string_view line) {
  const std::string_view marker = line.substr(std::min(line.find(';'), line.size()));
  if (marker.find("extra") != std::string_view::npos) return std::nullopt;
  const std::string wanted = without_blanks(line.substr(0, line.find(';')));
  const std::size_t sign = wanted.find("==");
  if (sign == std::string::npos || wanted.find(',') != std::string::npos || wanted.find('*') != std::string::npos) {
    return std::nullopt;
  }
  return std::pair(normalized(wanted.substr(0, std::min(wanted.find('['), sign))), wanted.substr(sign + 2));
}

}  // namespace

std::string normalized(std::string_view name) {
  std::string text;
  for (const char c : name) {
    const bool separator = c == '-' || c == '_' || c == '.';
    if (separator && text.ends_with('-')) continue;
    text += separator ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

Packages Packages::read(const std::vector<fs::path>& path) {
  Packages packages;
  for (const fs::path& folder : path) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      if (const auto found = name_and_version(entry->path().filename().string())) {
        packages.add(found->first, {found->second, entry->path()});
      }
    }
  }
  return packages;
}

void Packages::add(std::string_view name, Package package) {
  packages_.try_emplace(normalized(name), std::move(package));
}

const Package* Packages::find(std::string_view name) const {
  const auto found = packages_.find(normalized(name));
  return found == packages_.end() ? nullptr : &found->second;
}

std::string Packages::version(std::string_view name) const {
  const Package* package = find(name);
  return package != nullptr ? package->version : std::string();
}

std::map<std::string, std::string> exact_requirements(const fs::path& metadata) {
  constexpr std::string_view kField = "Requires-Dist: ";
  std::map<std::string, std::string> found;
  const std::string text = first_lines(metadata / "METADATA");
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    if (line.starts_with(kField)) {
      if (auto wanted = exact_requirement(line.substr(kField.size()))) found.insert(std::move(*wanted));
    }
    begin = end + 1;
  }
  return found;
}

}  // namespace devsan::doctor
