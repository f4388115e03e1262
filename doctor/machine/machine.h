// What the files of the kernel say of this machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace devsan::doctor {

struct Limit {
  bool unlimited = false;
  std::uint64_t value = 0;
};

struct Machine {
  std::string kernel;  // "6.1.0-13-amd64"
  bool wsl2 = false;
  bool container = false;

  std::uint64_t memory_total = 0;  // bytes; 0 where it cannot be read
  std::uint64_t memory_available = 0;
  std::optional<std::uint64_t> group_limit;  // of the tightest control group that has one
  std::uint64_t group_left = 0;              // of that limit, counting what was only read from files as free
  int group_version = 0;

  std::optional<Limit> locked_memory;  // bytes
  std::optional<Limit> open_files;
  std::optional<std::uint64_t> shared_memory;  // size of /dev/shm in bytes

  std::string module_version;               // of the driver's kernel module
  int device_files = 0;                     // /dev/nvidia0, …
  bool dxg = false;                         // /dev/dxg, by which WSL2 reaches the GPU
  std::vector<std::string> cuda_libraries;  // the files libcuda.so.1 where loaders look
  std::vector<std::string> toolkits;        // versions of CUDA in /usr/local/cuda*, the one of /usr/local/cuda first

  // What can still be had, by the machine and by its control group.
  std::uint64_t memory_left() const;
};

// `root` stands for "/".
Machine read_machine(const std::filesystem::path& root = "/");

}  // namespace devsan::doctor
