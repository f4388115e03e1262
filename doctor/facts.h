// All that the checks are given. Reading and judging are apart, so that each can be tested alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "doctor/config/document.h"
#include "doctor/diagnosis.h"
#include "doctor/driver/driver.h"
#include "doctor/machine/environment.h"
#include "doctor/machine/folder.h"
#include "doctor/machine/machine.h"
#include "doctor/python/packages.h"
#include "doctor/python/torch_build.h"

namespace devsan::doctor {

// What the hooks of devsan are for this torch; launch/ knows.
struct HooksFact {
  Level level = Level::ok;
  std::string found;
  std::string cure;
};

struct PythonFact {
  std::string path;     // of the interpreter; empty where there is none
  std::string version;  // "3.11.2"
  std::string trouble;  // why it could not be asked
};

// What is to be run, as far as the user says.
struct Plan {
  std::optional<std::uint64_t> params;
  std::optional<std::uint64_t> world_size;
  std::optional<std::uint64_t> gpus_per_node;
};

// What DeepSpeed is told, in the terms of its own config, and how the file says it.
struct DeepSpeedSettings {
  Json value;
  std::string file;
  bool of_accelerate = false;  // by accelerate's own keys

  // "stage": 3; zero_stage: 3
  std::string setting(const std::string& section, const std::string& key, const std::string& text) const;
  // What switches a kind of offloading on.
  std::string offload_key(const std::string& section) const { return of_accelerate ? section + "_device" : section; }
};

struct Facts {
  Machine machine;
  Environment environment;
  DriverAnswer driver;
  PythonFact python;
  Packages packages;
  std::optional<TorchBuild> torch;
  std::optional<HooksFact> hooks;
  std::optional<Document> deepspeed;
  std::optional<Document> accelerate;
  std::map<std::string, Folder> folders;  // by the path that the DeepSpeed config has
  Plan plan;

  // How many processes train, by the plan or by the accelerate config; nothing where neither says.
  std::optional<std::uint64_t> world_size() const;
  // Parameters of one rank; nothing where the number of the model's is not known.
  std::optional<std::uint64_t> params_of_rank() const;
  // What DeepSpeed is told: by its config, or by what accelerate makes of its own; nothing where neither can be read.
  std::optional<DeepSpeedSettings> deepspeed_settings() const;
  // Of the plan, or what the machine has, at most the world size.
  std::optional<std::uint64_t> gpus_per_node() const;
};

Diagnosis diagnose(const Facts& facts);

}  // namespace devsan::doctor
