#include "doctor/checks/release.h"

#include "doctor/config/known_keys.h"
#include "doctor/versions/pep440.h"

namespace devsan::doctor {

Release release_of(const Facts& facts) {
  const std::optional<Version> have = parse_version(facts.packages.version("deepspeed"));
  const std::optional<Version> known = parse_version(known_keys().deepspeed);
  if (!have || !known) return Release::unknown;
  const std::weak_ordering order = compare(*have, *known);
  return order == 0 ? Release::same : (order < 0 ? Release::older : Release::newer);
}

}  // namespace devsan::doctor
