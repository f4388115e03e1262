// The file of suppressions: which findings a person does not want to hear of. docs/suppressions.md says how it is
// written. The process asks it before it says or ends anything, and the report before it shows anything.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "trace/finding_kind.h"
#include "trace/finding_place.h"

namespace devsan::trace {

// One entry. Patterns are empty where it asks for nothing.
struct Suppression {
  int line = 0;        // in its file, from 1
  std::string text;    // the entry as written, without its comment
  std::string reason;  // the comment behind it, or else the lines of comment right above
  KindSet kinds = 0;
  std::string op;
  std::string file;
  std::string function;

  bool matches(const FindingPlace& place) const noexcept;
};

struct SuppressionComplaint {
  int line = 0;  // 0: the file as a whole
  std::string sentence;
};

struct ParsedSuppressions {
  std::vector<Suppression> entries;
  std::vector<SuppressionComplaint> complaints;  // each in the order of lines; the other entries still count
};

// More of either is complained of, and left out.
inline constexpr std::size_t kMaxSuppressionBytes = std::size_t{256} << 10;
inline constexpr std::size_t kMaxSuppressions = 2000;

// `text` is what the file holds. Never throws for any input.
ParsedSuppressions parse_suppressions(std::string_view text);

// `*` stands for any text, also for none and across `/`; `?` for one byte. Takes time in proportion to the product of
// the lengths at most.
bool matches_pattern(std::string_view pattern, std::string_view text) noexcept;

}  // namespace devsan::trace
