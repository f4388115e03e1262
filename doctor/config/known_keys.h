// The keys that DeepSpeed's and accelerate's configs know: known_keys.json, which scripts/deepspeed_keys reads from the
// libraries and the program carries.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/config/document.h"

namespace devsan::doctor {

struct KeyInfo {
  std::string type;          // "bool", "int", "float", "str", "enum", "section", "any"
  std::vector<Json> values;  // of an enum
  std::optional<double> at_least;
  std::optional<double> above;
  std::optional<double> at_most;
  bool optional = false;  // null is a value
  bool deprecated = false;
  std::string replacement;  // of a deprecated key
};

struct Section {
  bool closed = false;  // an unknown key in it is an error, not passed over
  std::map<std::string, KeyInfo> keys;

  std::vector<std::string> names() const;
};

struct KnownKeys {
  std::string deepspeed;  // the releases that the keys are of
  std::string accelerate;
  std::map<std::string, Section> sections;  // by path; "" is the outermost one
  std::vector<std::string> removed;         // paths that DeepSpeed refuses by name
  std::vector<std::string> filled_by_transformers;
  std::vector<std::string> filled_by_accelerate;
  std::vector<std::string> accelerate_keys;
  std::vector<std::string> accelerate_sagemaker;
  std::vector<std::string> accelerate_deepspeed;
  std::vector<std::string> accelerate_fsdp;
  std::vector<std::string> distributed_types;
};

const KnownKeys& known_keys();

bool has_word(const std::vector<std::string>& words, std::string_view word);

}  // namespace devsan::doctor
