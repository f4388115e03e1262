// Facts of a sound machine with two GPUs, for tests of checks to spoil.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <utility>

#include "doctor/checks/checks.h"
#include "doctor/facts.h"

namespace devsan::doctor {

inline Gpu sample_gpu(int capability = 90) {
  Gpu gpu;
  gpu.name = "NVIDIA H100";
  gpu.uuid = "GPU-1";
  gpu.memory = std::uint64_t{80} << 30;
  gpu.major = capability / 10;
  gpu.minor = capability % 10;
  return gpu;
}

inline Facts sample_facts() {
  Facts facts;
  facts.machine.kernel = "6.1.0";
  facts.machine.memory_total = std::uint64_t{512} << 30;
  facts.machine.memory_available = std::uint64_t{400} << 30;
  facts.machine.locked_memory = Limit{true, 0};
  facts.machine.open_files = Limit{false, 65536};
  facts.machine.shared_memory = std::uint64_t{16} << 30;
  facts.machine.device_files = 2;
  facts.driver.cuda_path = "/usr/lib/x86_64-linux-gnu/libcuda.so.1";
  facts.driver.init_status = 0;
  facts.driver.cuda_version = 12040;
  facts.driver.version = "550.54.14";
  facts.driver.visible = {sample_gpu(), sample_gpu()};
  facts.driver.all = facts.driver.visible;
  facts.driver.all[1].uuid = "GPU-2";
  facts.python = {"/usr/bin/python3", "3.11.2", ""};
  TorchBuild torch;
  torch.directory = "/site/torch";
  torch.version = "2.6.0+cu124";
  torch.cuda = "12.4";
  torch.architectures = {"sm_50", "sm_80", "sm_86", "sm_90"};
  facts.torch = torch;
  facts.packages.add("torch", {"2.6.0+cu124", ""});
  return facts;
}

inline Facts with_deepspeed(const std::string& json, Facts facts = sample_facts()) {
  facts.deepspeed = parse_json_config("ds.json", json);
  REQUIRE(facts.deepspeed->error == "");
  return facts;
}

inline Facts with_accelerate(const std::string& yaml, Facts facts = sample_facts()) {
  facts.accelerate = parse_yaml_config("acc.yaml", yaml);
  REQUIRE(facts.accelerate->error == "");
  return facts;
}

using CheckFunction = void (*)(const Facts&, Diagnosis&);

inline std::vector<Line> run_check(CheckFunction check, const Facts& facts) {
  Diagnosis diagnosis;
  check(facts, diagnosis);
  return diagnosis.lines();
}

// The worst that a check says.
inline Level worst(const std::vector<Line>& lines) {
  Level level = Level::ok;
  for (const Line& line : lines) level = std::max(level, line.level);
  return level;
}

inline Level worst(CheckFunction check, const Facts& facts) {
  return worst(run_check(check, facts));
}

// Whether a line of that level contains the text in what it says.
inline bool says(const std::vector<Line>& lines, Level level, std::string_view text) {
  return std::ranges::any_of(lines, [&](const Line& line) {
    return line.level == level && (line.found + " " + line.means + " " + line.cure).find(text) != std::string::npos;
  });
}

}  // namespace devsan::doctor
