// The variables of the environment that decide about devices. No others are ever read or shown.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

namespace devsan::doctor {

class Environment {
 public:
  static Environment of(std::map<std::string, std::string> values) {
    Environment environment;
    environment.values_ = std::move(values);
    return environment;
  }

  std::optional<std::string> get(const std::string& name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::map<std::string, std::string> values_;
};

Environment read_environment();

}  // namespace devsan::doctor
