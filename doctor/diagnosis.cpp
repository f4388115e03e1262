#include "doctor/diagnosis.h"

#include <algorithm>
#include <array>

namespace devsan::doctor {
namespace {

std::string dashed(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name;
}

std::span<const CheckInfo> all_checks() {
  static const std::vector<CheckInfo> checks = {
#define DEVSAN_CHECK(name, group, help) {Check::name, Group::group, dashed(#name)},
#include "doctor/checks.def"
#undef DEVSAN_CHECK
  };
  return checks;
}

}  // namespace

const CheckInfo& info_of(Check check) {
  return all_checks()[static_cast<std::size_t>(check)];
}

std::span<const GroupInfo> all_groups() {
  static constexpr std::array kGroups = {
#define DEVSAN_GROUP(name, heading) GroupInfo{Group::name, #name, heading},
#include "doctor/groups.def"
#undef DEVSAN_GROUP
  };
  return kGroups;
}

const GroupInfo& info_of(Group group) {
  return all_groups()[static_cast<std::size_t>(group)];
}

std::string_view name_of(Level level) {
  switch (level) {
    case Level::ok:
      return "ok";
    case Level::warning:
      return "warning";
    case Level::error:
      return "error";
  }
  return "";
}

std::size_t Diagnosis::count(Level level) const {
  return static_cast<std::size_t>(std::ranges::count(lines_, level, &Line::level));
}

bool Diagnosis::has(Check check) const {
  return std::ranges::find(lines_, check, &Line::check) != lines_.end();
}

void Diagnosis::sort() {
  std::ranges::stable_sort(lines_, {}, &Line::check);
}

}  // namespace devsan::doctor
