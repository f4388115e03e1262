// Whether DeepSpeed can read the config, and knows what stands in it.
#include "doctor/checks/checks.h"
#include "doctor/checks/release.h"
#include "doctor/config/deepspeed.h"
#include "doctor/config/key_values.h"
#include "doctor/config/known_keys.h"
#include "doctor/near_miss.h"

namespace devsan::doctor {
namespace {

constexpr char kConfigPage[] = "https://www.deepspeed.ai/docs/config-json/";
constexpr char kRemovedThread[] = "https://github.com/deepspeedai/DeepSpeed/issues/8489";

std::string joined(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

// Walks the sections of a config that the known keys describe.
class KeyChecker {
 public:
  KeyChecker(const Facts& facts, Diagnosis& diagnosis)
      : document_(*facts.deepspeed), release_(deepspeed_release(facts)), diagnosis_(diagnosis) {}

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
      if (const auto removed = known_keys().removed.find(whole); removed != known_keys().removed.end()) {
        tell_removed(whole, removed->second);
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
    if (!fits(info, value)) {
      const bool taken = info.type == "truth";
      tell(taken ? Level::warning : Level::error, path, "is " + shown(value) + ".",
           taken                            ? "DeepSpeed takes every text for true."
           : info.reading == Reading::plain ? "DeepSpeed does not convert it, and fails when it computes with it."
                                            : "DeepSpeed refuses it.",
           cure_for(info, value));
    } else if (const std::string bound = broken_bound(info, value); !bound.empty()) {
      tell(Level::error, path, "is " + shown(value) + ".", "DeepSpeed refuses it.", "It is to be " + bound + ".");
    }
  }

  void tell_removed(const std::string& path, const std::string& advice) {
    if (release_ == Release::older) return;
    tell(release_ == Release::unknown ? Level::warning : Level::error, path,
         "was taken out of DeepSpeed; " + known_keys().deepspeed + " refuses a config that has it.",
         "deepspeed.initialize raises DeepSpeedConfigError.",
         advice.empty() ? "Take it out, or stay with an older release." : advice, kRemovedThread);
  }

  void tell_unknown(const std::string& path, const std::string& key, const Section& section) {
    if (key.starts_with('_')) return;  // a note
    if (const auto renamed = known_keys().renamed.find(path); renamed != known_keys().renamed.end()) {
      if (release_ == Release::older) return;  // which may know it
      tell(Level::warning, path, "is called " + renamed->second + " in DeepSpeed " + known_keys().deepspeed + ".",
           "DeepSpeed passes the old name over without a word.", "Write " + renamed->second + " in its place.");
      return;
    }
    const std::string guess = nearest(key, section.names());
    const std::string elsewhere = guess.empty() ? section_that_has(key) : std::string();
    // Another release may know it, or have a plain dictionary where this one has a model of pydantic.
    const bool refused = section.closed && (release_ == Release::same || release_ == Release::unknown);
    std::string cure = "Take it out, or look it up.";
    if (!guess.empty()) cure = "Did you mean " + guess + "?";
    if (!elsewhere.empty()) cure = "It belongs in " + elsewhere + ".";
    tell(refused ? Level::error : Level::warning, path,
         "is no key that DeepSpeed " + known_keys().deepspeed + " knows.",
         refused          ? "DeepSpeed refuses the config (pydantic: extra inputs are not permitted)."
         : section.closed ? "The installed DeepSpeed knows it, passes it over or refuses it."
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
                   "Nothing about the config could be checked.",
                   document.cure.empty() ? "Give a DeepSpeed config in JSON." : document.cure, kConfigPage});
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
