// Finds the torch that a Python would import, without importing it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace devsan::launch {

struct Torch {
  std::string python;               // the interpreter asked, absolute
  std::filesystem::path directory;  // of the package
  std::string version;              // "2.13.0+cpu"
  bool cxx11_abi = true;            // how its std::string is mangled

  std::filesystem::path library() const { return directory / "lib/libtorch_cpu.so"; }
  std::filesystem::path libraries() const { return directory / "lib"; }
  std::filesystem::path include() const { return directory / "include"; }
};

struct ProbeResult {
  std::optional<Torch> torch;
  bool is_python = true;  // false when the program could not even answer
  std::string reason;     // one sentence, when there is no torch
};

ProbeResult probe_torch(const std::string& python);

// Whether the functions of an ELF library take the C++11 std::string, told by the names it exports.
bool uses_cxx11_abi(const std::filesystem::path& libc10);

}  // namespace devsan::launch
