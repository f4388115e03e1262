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

// What a library does with a value before it uses it.
enum class Reading {
  converted,  // pydantic does, which takes 5e8 and "16" for whole numbers
  plain,      // nothing
  text,       // accelerate writes it into an environment variable, and its worker parses that
};

// A key counts only where another one of its section has one of these values, or none of them.
struct KeyCondition {
  std::string key;
  std::vector<std::string> values;
  bool negated = false;
  std::string unset;  // what the other one is where the config does not say
};

struct KeyInfo {
  std::string type;  // "bool", "truth" (only asked whether it is true), "int", "float", "str", "enum", "section", "any"
  Reading reading = Reading::converted;
  std::vector<Json> values;        // of an enum
  std::vector<std::string> words;  // that are taken beside what the type says
  bool any_case = false;           // they may be written in capitals or not
  bool open = false;               // there may be more of them
  std::optional<double> at_least;
  std::optional<double> above;
  std::optional<double> at_most;
  bool optional = false;  // null is a value
  bool deprecated = false;
  std::string replacement;  // of a deprecated key
  std::optional<KeyCondition> when;
};

struct Section {
  bool closed = false;  // an unknown key in it is an error, not passed over
  std::string prefix;   // which the keys may leave out
  std::map<std::string, KeyInfo> keys;

  std::vector<std::string> names() const;
  // A key with the prefix, if it was left out.
  std::string whole_name(const std::string& key) const;
};

// Names of optimizers, as they are usually written.
struct OptimizerNames {
  std::vector<std::string> deepspeed;  // in capitals or not
  std::vector<std::string> zero;       // of these, those that ZeRO is tested with
  std::vector<std::string> torch;      // classes of torch.optim, as they are written
  std::vector<std::string> earlier;    // of earlier releases of DeepSpeed
};

struct KnownKeys {
  std::string deepspeed;  // the releases that the keys are of
  std::string accelerate;
  std::map<std::string, Section> sections;     // by path; "" is the outermost one
  std::map<std::string, std::string> removed;  // paths that DeepSpeed refuses by name, and what it says to do
  std::map<std::string, std::string> renamed;  // paths, and the key that took their place
  OptimizerNames optimizers;
  std::vector<std::string> filled_by_transformers;
  std::vector<std::string> filled_by_accelerate;
  std::vector<std::string> accelerate_keys;
  std::vector<std::string> accelerate_sagemaker;
  std::map<std::string, Section> accelerate_sections;  // by name; "" is the outermost one, with what has a type
  std::vector<std::string> distributed_types;
  // Words of earlier releases of accelerate, and what took their place; empty where nothing did.
  std::map<std::string, std::string> accelerate_earlier_keys;  // by path
  std::map<std::string, std::string> accelerate_earlier_types;
};

const KnownKeys& known_keys();

bool has_word(const std::vector<std::string>& words, std::string_view word);

}  // namespace devsan::doctor
