// How a torch was built, told by its files.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/python/packages.h"

namespace devsan::doctor {

struct TorchBuild {
  std::filesystem::path directory;
  std::string version;                              // "2.11.0+cu130"
  std::string cuda;                                 // "13.0"; empty for a build without CUDA
  std::string hip;                                  // of ROCm; empty for others
  std::vector<std::string> architectures;           // "sm_80", "compute_90"; empty if unknown
  std::map<std::string, std::string> requirements;  // packages of NVIDIA that it asks for, with their versions
};

// The torch that the first of these folders has; nothing where none has one.
std::optional<TorchBuild> read_torch_build(const std::vector<std::filesystem::path>& path, const Packages& packages);

// The longest list of architectures among the texts of a library: "sm_75 sm_80 compute_90".
std::vector<std::string> architectures_in(std::string_view library);

}  // namespace devsan::doctor
