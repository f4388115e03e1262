// The packages that a Python finds, told by the folders of their metadata. Nothing is imported.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace devsan::doctor {

struct Package {
  std::string version;
  std::filesystem::path metadata;  // the folder NAME-VERSION.dist-info, or .egg-info
};

// "Ruamel.YAML_clib" is "ruamel-yaml-clib", as PEP 503 says.
std::string normalized(std::string_view name);

class Packages {
 public:
  // `path` is Python's sys.path: of two packages of a name the first is the one that Python takes.
  static Packages read(const std::vector<std::filesystem::path>& path);

  void add(std::string_view name, Package package);
  const Package* find(std::string_view name) const;  // null where there is none
  std::string version(std::string_view name) const;  // empty where there is none

  auto begin() const { return packages_.begin(); }
  auto end() const { return packages_.end(); }

 private:
  std::map<std::string, Package> packages_;
};

// What a package asks for exactly on Linux: {"nvidia-nccl-cu12": "2.21.5"}.
std::map<std::string, std::string> exact_requirements(const std::filesystem::path& metadata);

}  // namespace devsan::doctor
