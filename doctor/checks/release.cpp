#include "doctor/checks/release.h"

#include "doctor/config/known_keys.h"
#include "doctor/versions/pep440.h"

namespace devsan::doctor {
namespace {

Release release_of(const std::string& installed, const std::string& of_keys) {
  const std::optional<Version> have = parse_version(installed);
  const std::optional<Version> known = parse_version(of_keys);
  if (!have || !known) return Release::unknown;
  const std::weak_ordering order = compare(*have, *known);
  return order == 0 ? Release::same : (order < 0 ? Release::older : Release::newer);
}

}  // namespace

Release deepspeed_release(const Facts& facts) {
  return release_of(facts.packages.version("deepspeed"), known_keys().deepspeed);
}

Release accelerate_release(const Facts& facts) {
  return release_of(facts.packages.version("accelerate"), known_keys().accelerate);
}

}  // namespace devsan::doctor
