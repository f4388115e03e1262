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

enum class Probed {
  no_answer,     // it is no Python that works
  other_python,  // one that devsan cannot serve
  no_torch,
  other_torch,  // one that devsan cannot serve
  torch,
};

struct ProbeResult {
  Probed what;
  std::optional<Torch> torch;
  std::string reason{};  // one sentence, when there is no torch that devsan can serve
};

ProbeResult probe_torch(const std::string& python);

}  // namespace devsan::launch
