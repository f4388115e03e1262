// A config as it was read: JSON, or YAML in the terms of JSON. What stands in the file is never run, and reading it is
// bounded in time and memory.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/text.h"

namespace devsan::doctor {

using Json = nlohmann::ordered_json;

struct Document {
  std::string name;  // as the user gave it
  Json value;        // an object; null where `error` says why not
  std::string error;
  std::string cure;                  // of the error, where there is more to say than for any file
  bool only_relaxed = false;         // has comments or trailing commas, which HJSON allows and JSON does not
  std::vector<std::string> doubled;  // paths of keys that stand there twice

  bool readable() const { return error.empty(); }
};

constexpr std::size_t kMaxConfigBytes = 1 << 20;
constexpr std::size_t kMaxConfigKeys = 4096;  // of all objects together; looking one up takes time in proportion
constexpr char kTooManyKeys[] = "has more than 4,096 keys, which no config has";
constexpr int kMaxConfigDepth = 64;

Document parse_json_config(std::string name, std::string_view text);
Document parse_yaml_config(std::string name, std::string_view text);

// By the name of the file: YAML for .yaml and .yml, JSON for all others.
Document read_config(const std::filesystem::path& path);

// The value at "zero_optimization.offload_param.device"; null where there is none.
const Json* find_value(const Json& object, std::string_view path);

// The text at such a path; empty where there is none, or another value.
std::string text_at(const Json& object, std::string_view path);

// A value as it may be shown: short, and on one line.
std::string shown(const Json& value);

}  // namespace devsan::doctor
