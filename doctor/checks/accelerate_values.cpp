// Values of accelerate's config by their types, as known_keys.json has them.
#include <algorithm>

#include "doctor/checks/accelerate_part.h"
#include "doctor/config/key_values.h"
#include "doctor/config/known_keys.h"

namespace devsan::doctor {
namespace {

class ValueChecker : AccelerateChecker {
 public:
  ValueChecker(const Facts& facts, Diagnosis& diagnosis) : AccelerateChecker(facts, diagnosis) {}

  void check() {
    if (text_at(config_, "compute_environment") == "AMAZON_SAGEMAKER") return;  // where few of these count
    for (const auto& [name, section] : known_keys().accelerate_sections) {
      const Json* object = name.empty() ? &config_ : find_value(config_, name);
      if (object == nullptr || object->is_null() || !reads_section(config_, name)) continue;
      if (object->is_object()) {
        check_section(name, section, *object);
      } else {
        tell_value(Level::error, name + " is " + shown(*object) + ", not keys and values.", "accelerate launch stops.",
                   "Write its keys below it, each with two more blanks before it.", name);
      }
    }
  }

 private:
  void check_section(const std::string& name, const Section& section, const Json& object) {
    for (const auto& [key, value] : object.items()) {
      const auto known = section.keys.find(section.whole_name(key));
      if (known != section.keys.end() && counts(name, known->second)) {
        check_value(name.empty() ? key : name + "." + key, known->second, value);
      }
    }
  }

  bool counts(const std::string& section, const KeyInfo& info) const {
    if (!info.when) return true;
    const std::string text = lower(accelerate_text(config_, section, info.when->key, info.when->unset));
    const bool among =
        std::ranges::any_of(info.when->values, [&](const std::string& value) { return lower(value) == text; });
    return among != info.when->negated;
  }

  void check_value(const std::string& path, const KeyInfo& info, const Json& value) {
    if (info.type == "any" || (value.is_null() && info.optional)) return;
    if (!fits(info, value)) {
      const bool taken = info.type == "truth";
      tell_value(taken || info.open ? Level::warning : Level::error, path + " is " + shown(value) + ".",
                 taken       ? "accelerate takes every text for true."
                 : info.open ? "accelerate hands it on, and what gets it refuses a word that it does not know."
                             : "accelerate launch, or what it starts, stops at it.",
                 cure_for(info, value), path);
    } else if (const std::string bound = broken_bound(info, value); !bound.empty()) {
      tell_value(Level::error, path + " is " + shown(value) + ".", "accelerate launch, or what it starts, stops at it.",
                 "It is to be " + bound + ".", path);
    }
  }
};

}  // namespace

void check_accelerate_values(const Facts& facts, Diagnosis& diagnosis) {
  ValueChecker(facts, diagnosis).check();
}

}  // namespace devsan::doctor
