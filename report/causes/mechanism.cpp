#include "report/causes/mechanism.h"

#include <array>
#include <initializer_list>

namespace devsan::report {
namespace {

constexpr std::string_view kMechanismNames[] = {
#define DEVSAN_MECHANISM(name, title, change, ...) #name,
#include "report/causes/mechanisms.def"
#undef DEVSAN_MECHANISM
};

constexpr std::string_view kChanges[] = {
#define DEVSAN_MECHANISM(name, title, change, ...) change,
#include "report/causes/mechanisms.def"
#undef DEVSAN_MECHANISM
};

// Does not compile where a role belongs to none, or to several.
consteval std::array<Mechanism, slice::kRoles> mechanisms_of_roles() {
  using enum slice::Role;
  std::array<Mechanism, slice::kRoles> mechanisms{};
  std::array<bool, slice::kRoles> known{};
  const auto belong = [&](Mechanism mechanism, std::initializer_list<slice::Role> roles) {
    for (const slice::Role role : roles) {
      const auto at = static_cast<std::size_t>(role);
      if (known[at]) throw "a role belongs to two mechanisms";
      mechanisms[at] = mechanism;
      known[at] = true;
    }
  };
#define DEVSAN_MECHANISM(name, title, change, ...) belong(Mechanism::name, {__VA_ARGS__});
#include "report/causes/mechanisms.def"
#undef DEVSAN_MECHANISM
  for (const bool one : known) {
    if (!one) throw "a role belongs to no mechanism";
  }
  return mechanisms;
}

constexpr auto kMechanisms = mechanisms_of_roles();

}  // namespace

std::string_view name_of(Mechanism mechanism) {
  return kMechanismNames[static_cast<std::size_t>(mechanism)];
}

std::string_view change_of(Mechanism mechanism) {
  return kChanges[static_cast<std::size_t>(mechanism)];
}

Mechanism mechanism_of(slice::Role role) {
  return kMechanisms[static_cast<std::size_t>(role)];
}

}  // namespace devsan::report
