#include "doctor/diagnosis.h"

#include <algorithm>
#include <array>

namespace devsan::doctor {
namespace {

constexpr std::ptrdiff_t kMostLines = 20;  // of a check

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

void Diagnosis::shorten() {
  std::vector<Line> kept;
  for (auto begin = lines_.begin(); begin != lines_.end();) {
    const auto end = std::find_if(begin, lines_.end(), [&](const Line& line) { return line.check != begin->check; });
    const auto last = end - begin > kMostLines ? begin + kMostLines : end;
    kept.insert(kept.end(), begin, last);
    if (last != end) {
      const Level worst =
          std::max_element(last, end, [](const Line& a, const Line& b) { return a.level < b.level; })->level;
      kept.push_back({begin->check,
                      worst,
                      "… and " + std::to_string(end - last) + " more lines of this kind.",
                      {},
                      "Mend those above first.",
                      {}});
    }
    begin = end;
  }
  lines_ = std::move(kept);
}

}  // namespace devsan::doctor
