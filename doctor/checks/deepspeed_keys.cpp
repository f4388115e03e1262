// Whether DeepSpeed can read the config, and knows what stands in it.
#include <algorithm>
#include <cctype>
#include <map>

#include "doctor/checks/checks.h"
#include "doctor/config/deepspeed.h"
#include "doctor/config/known_keys.h"
#include "doctor/near_miss.h"
#include "doctor/text.h"
#include "doctor/versions/pep440.h"

namespace devsan::doctor {
namespace {

constexpr char kConfigPage[] = "https://www.deepspeed.ai/docs/config-json/";
constexpr char kRemovedThread[] = "https://github.com/deepspeedai/DeepSpeed/issues/8489";

std::string joined(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

// How the installed DeepSpeed stands to the release that the known keys are of.
enum class Release { unknown, older, same, newer };

Release release_of(const Facts& facts) {
  const std::optional<Version> have = parse_version(facts.packages.version("deepspeed"));
  const std::optional<Version> known = parse_version(known_keys().deepspeed);
  if (!have || !known) return Release::unknown;
  const std::weak_ordering order = compare(*have, *known);
  return order == 0 ? Release::same : (order < 0 ? Release::older : Release::newer);
}

// As pydantic takes whole numbers: 5e8 and "16" are, "5e8" is not.
bool is_whole(const Json& value) {
  if (value.is_boolean()) return true;
  if (value.is_string() && value.get_ref<const std::string&>().find_first_not_of("+-0123456789") != std::string::npos) {
    return false;
  }
  return whole_number(&value).has_value();
}

bool fits_type(const KeyInfo& info, const Json& value) {
  if (info.type == "bool") {
    constexpr std::string_view kWords[] = {"true", "false", "yes", "no", "on", "off", "1", "0", "t", "f", "y", "n"};
    if (value.is_string()) {
      return std::ranges::any_of(kWords, [&](std::string_view word) {
        const auto& text = value.get_ref<const std::string&>();
        return std::ranges::equal(text, word, {}, [](unsigned char c) { return std::tolower(c); });
      });
    }
    return value.is_boolean() || (value.is_number() && (value == 0 || value == 1));
  }
  if (info.type == "int") return is_whole(value);
  if (info.type == "float") return value.is_boolean() || number(&value).has_value();
  if (info.type == "str") return value.is_string();
  if (info.type == "section") return value.is_object();
  if (info.type == "enum") {
    return std::ranges::any_of(info.values, [&](const Json& known) {
      return known.is_number() ? is_whole(value) && whole_number(&value).value_or(value == true) == known
                               : known == value;
    });
  }
  return true;
}

std::string wanted(const KeyInfo& info) {
  static const std::map<std::string, std::string> names = {{"bool", "true or false"},
                                                           {"int", "a whole number"},
                                                           {"float", "a number"},
                                                           {"str", "a text"},
                                                           {"section", "an object of keys and values"}};
  if (info.type != "enum") return names.at(info.type);
  std::vector<std::string> words;
  for (const Json& value : info.values) words.push_back(shown(value));
  return "one of " + listed(words);
}

// "at least 1", where the value is outside of its bounds; else empty.
std::string broken_bound(const KeyInfo& info, const Json& value) {
  const std::optional<double> found = number(&value);
  if (!found) return {};
  if (info.at_least && *found < *info.at_least) return "at least " + shown(Json(*info.at_least));
  if (info.above && *found <= *info.above) return "more than " + shown(Json(*info.above));
  if (info.at_most && *found > *info.at_most) return "at most " + shown(Json(*info.at_most));
  return {};
}

// Walks the sections of a config that the known keys describe.
class KeyChecker {
 public:
  KeyChecker(const Facts& facts, Diagnosis& diagnosis)
      : document_(*facts.deepspeed), release_(release_of(facts)), diagnosis_(diagnosis) {}

  void check() {
    for (const auto& [path, section] : known_keys().sections) {
      const Json* object = path.empty() ? &document_.value : find_value(document_.value, path);
      if (object == nullptr || object->is_null() || is_auto(object)) continue;
      if (object->is_object()) {
        check_section(path, section, *object);
      } else if (!(path == "zero_optimization" && object->is_boolean())) {
        tell(Level::error, path, "is " + shown(*object) + ", not an object of keys and values.",
             "DeepSpeed refuses it.", "Write it as an object.");
      }
    }
    if (find_value(document_.value, "zero_optimization") != nullptr &&
        find_value(document_.value, "zero_optimization")->is_boolean()) {
      tell(Level::warning, "zero_optimization", "is true or false, a deprecated form.", "It means stage 1 or none.",
           "Write {\"stage\": N}.");
    }
    if (told_ == 0) {
      diagnosis_.ok(Check::deepspeed_keys,
                    "DeepSpeed " + known_keys().deepspeed + " knows every key of " + document_.name + ".", kConfigPage);
    }
  }

 private:
  void check_section(const std::string& path, const Section& section, const Json& object) {
    for (const auto& [key, value] : object.items()) {
      const std::string whole = joined(path, key);
      const auto known = section.keys.find(key);
      if (has_word(known_keys().removed, whole)) {
        tell_removed(whole);
      } else if (known == section.keys.end()) {
        tell_unknown(whole, key, section);
      } else {
        check_value(whole, known->second, value);
      }
    }
  }

  void check_value(const std::string& path, const KeyInfo& info, const Json& value) {
    if (info.deprecated) {
      tell(Level::warning, path, "is deprecated.",
           "DeepSpeed converts it with a warning, and refuses it beside its successor.",
           info.replacement.empty() ? "Take it out." : "Write " + info.replacement + " in its place.");
    }
    if (info.type == "any" || is_auto(&value) || (value.is_null() && info.optional)) return;
    if (!fits_type(info, value)) {
      tell(Level::error, path, "is " + shown(value) + ".", "DeepSpeed refuses it.", "Write " + wanted(info) + ".");
    } else if (const std::string bound = broken_bound(info, value); !bound.empty()) {
      tell(Level::error, path, "is " + shown(value) + ".", "DeepSpeed refuses it.", "It is to be " + bound + ".");
    }
  }

  void tell_removed(const std::string& path) {
    if (release_ == Release::older) return;
    tell(release_ == Release::unknown ? Level::warning : Level::error, path,
         "was taken out of DeepSpeed; " + known_keys().deepspeed + " refuses a config that has it.",
         "deepspeed.initialize raises DeepSpeedConfigError.", "Take it out, or stay with an older release.",
         kRemovedThread);
  }

  void tell_unknown(const std::string& path, const std::string& key, const Section& section) {
    if (key.starts_with('_')) return;  // a note
    const std::string guess = nearest(key, section.names());
    const std::string elsewhere = guess.empty() ? section_that_has(key) : std::string();
    const bool refused = section.closed && release_ != Release::newer;
    std::string cure = "Take it out, or look it up.";
    if (!guess.empty()) cure = "Did you mean " + guess + "?";
    if (!elsewhere.empty()) cure = "It belongs in " + elsewhere + ".";
    tell(refused ? Level::error : Level::warning, path, "is no key that DeepSpeed knows.",
         refused ? "DeepSpeed refuses the config (pydantic: extra inputs are not permitted)."
                 : "DeepSpeed passes it over without a word.",
         cure);
  }

  // The section that knows a key, if there is one alone.
  static std::string section_that_has(const std::string& key) {
    std::string found;
    for (const auto& [path, section] : known_keys().sections) {
      if (!section.keys.contains(key)) continue;
      if (!found.empty()) return {};
      found = path.empty() ? "the outermost object" : path;
    }
    return found;
  }

  void tell(Level level, const std::string& path, const std::string& what, const std::string& means,
            const std::string& cure, const std::string& source = {}) {
    ++told_;
    diagnosis_.add({Check::deepspeed_keys, level, path + " " + what, means, cure,
                    source.empty() ? document_.name + ": " + path : source});
  }

  const Document& document_;
  Release release_;
  Diagnosis& diagnosis_;
  int told_ = 0;
};

}  // namespace

void check_deepspeed_file(const Facts& facts, Diagnosis& diagnosis) {
  if (!facts.deepspeed) return;
  const Document& document = *facts.deepspeed;
  if (!document.readable()) {
    diagnosis.add({Check::deepspeed_file, Level::error, document.name + " " + document.error + ".",
                   "Nothing about the config could be checked.", "Give a DeepSpeed config in JSON.", kConfigPage});
    return;
  }
  for (const std::string& path : document.doubled) {
    diagnosis.add({Check::deepspeed_file, Level::error, path + " stands twice in " + document.name + ".",
                   "DeepSpeed refuses doubled keys.", "Keep one of them.", document.name + ": " + path});
  }
  if (document.only_relaxed) {
    diagnosis.add({Check::deepspeed_file, Level::warning, document.name + " has comments or trailing commas.",
                   "DeepSpeed reads them (HJSON); transformers and accelerate take JSON alone and stop.",
                   "Take them out.", kConfigPage});
  }
  if (!diagnosis.has(Check::deepspeed_file))
    diagnosis.ok(Check::deepspeed_file, document.name + " is JSON.", document.name);
}

void check_deepspeed_keys(const Facts& facts, Diagnosis& diagnosis) {
  if (facts.deepspeed && facts.deepspeed->readable()) KeyChecker(facts, diagnosis).check();
}

}  // namespace devsan::doctor
