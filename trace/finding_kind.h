// What kinds of findings there are. The process and the report speak of them by the same names.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "trace/file_layout.h"

namespace devsan::trace {

// From the worst on.
enum class Severity : std::uint8_t { error, warning, note };

enum class FindingKind : std::uint8_t {
#define DEVSAN_FINDING_KIND(enumerator, name, severity, meaning) enumerator,
#include "trace/finding_kinds.def"
#undef DEVSAN_FINDING_KIND
};

inline constexpr std::array kFindingKinds = {
#define DEVSAN_FINDING_KIND(enumerator, name, severity, meaning) FindingKind::enumerator,
#include "trace/finding_kinds.def"
#undef DEVSAN_FINDING_KIND
};

constexpr std::string_view kind_name(FindingKind kind) {
  constexpr std::array<std::string_view, kFindingKinds.size()> kNames = {
#define DEVSAN_FINDING_KIND(enumerator, name, severity, meaning) name,
#include "trace/finding_kinds.def"
#undef DEVSAN_FINDING_KIND
  };
  const auto index = static_cast<std::size_t>(kind);
  return index < kNames.size() ? kNames[index] : std::string_view();
}

constexpr std::optional<FindingKind> kind_named(std::string_view name) {
  for (const FindingKind kind : kFindingKinds) {
    if (kind_name(kind) == name) return kind;
  }
  return std::nullopt;
}

// What a Meeting with these flags is told as.
constexpr FindingKind kind_of_meeting(std::uint32_t flags) {
  if ((flags & kHostAccess) != 0) return FindingKind::host_dereference;
  if ((flags & kOutOfMemory) != 0) return FindingKind::out_of_memory;
  return (flags & kRaised) != 0 ? FindingKind::device_mismatch : FindingKind::mixed_operands;
}

// A set of kinds: one bit for each.
using KindSet = std::uint32_t;
static_assert(kFindingKinds.size() <= 32);

constexpr KindSet set_of(FindingKind kind) {
  return KindSet{1} << static_cast<unsigned>(kind);
}
inline constexpr KindSet kAllKinds = static_cast<KindSet>((std::uint64_t{1} << kFindingKinds.size()) - 1);

}  // namespace devsan::trace
