// What the checks of accelerate's config share.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "doctor/checks/checks.h"
#include "doctor/config/accelerate.h"
#include "doctor/config/deepspeed.h"

namespace devsan::doctor {

class AccelerateChecker {
 protected:
  AccelerateChecker(const Facts& facts, Diagnosis& diagnosis)
      : facts_(facts),
        document_(*facts.accelerate),
        config_(document_.value),
        type_(text_at(config_, "distributed_type")),
        diagnosis_(diagnosis) {}

  void tell_value(Level level, std::string found, std::string means, std::string cure, std::string_view key) {
    diagnosis_.add({Check::accelerate_values, level, std::move(found), std::move(means), std::move(cure),
                    document_.name + ": " + std::string(key)});
  }

  // A whole number as accelerate's worker reads it from a text, too.
  std::int64_t number_at(const std::string& section, const std::string& key, std::int64_t unset) const {
    return whole_number(accelerate_value(config_, section, key)).value_or(unset);
  }

  const Facts& facts_;
  const Document& document_;
  const Json& config_;
  const std::string type_;  // distributed_type
  Diagnosis& diagnosis_;
};

}  // namespace devsan::doctor
