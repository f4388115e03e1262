// A rule: where something is expected to be, or what is not to happen. docs/rules.md says how it is written.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/file_layout.h"
#include "trace/placement_layout.h"

namespace devsan::rules {

enum class About : std::uint8_t {
  place,             // tensors are on one of `places`
  beside_parameter,  // an optimizer's state is where its parameter is
  one_device,        // tensors are on one device, whichever
  activations,       // what modules compute is on one of `places`
  sync,              // the host does not wait
  transfer,          // nothing larger than `over` is copied
};

struct Where {
  std::string device;  // "cpu", "cuda" for any of them, "cuda:1", "cuda:local_rank", "cuda:rank"
  bool pinned = false;
};

// In one line: a tab and a line's end separate what is in a compiled one.
std::string without_separators(std::string_view text);

// Numbers from one to another, both included; no span at all stands for every number.
using Spans = std::vector<std::pair<std::int64_t, std::int64_t>>;
inline constexpr std::int64_t kNoEnd = INT64_MAX;
inline constexpr std::size_t kMaxSpans = 2000;  // of a condition in a file
bool holds(const Spans& spans, std::optional<std::int64_t> number);
// Whether they have a number from `first` to `last`.
bool meet(const Spans& spans, std::int64_t first, std::int64_t last);

using KindMask = std::uint32_t;  // 1 << PlaceKind
constexpr KindMask mask_of(trace::PlaceKind kind) {
  return KindMask{1} << static_cast<unsigned>(kind);
}

struct Rule {
  std::string file;
  int line = 0;
  std::string name;      // what a finding calls it: its own name, or else the sentence
  std::string sentence;  // "experts.{0-3} on cuda:1"
  About about = About::place;
  KindMask kinds = 0;
  std::string pattern = "*";
  std::vector<Where> places;
  std::optional<trace::Phase> phase;
  std::uint64_t over = 0;  // bytes
  Spans ranks;
  Spans local_ranks;
  Spans world_sizes;
  Spans steps;
};

// The keys that say for whom and when a rule holds, in files and in compiled lines.
struct SpanKey {
  std::string_view name;
  Spans Rule::*member;
};
inline constexpr std::array<SpanKey, 4> kSpanKeys = {{{"ranks", &Rule::ranks},
                                                      {"local_ranks", &Rule::local_ranks},
                                                      {"world_size", &Rule::world_sizes},
                                                      {"steps", &Rule::steps}}};

// What is wrong with a sentence, and at which of its bytes.
struct SentenceError {
  std::size_t at = 0;
  std::string text;
};

// Fills in what the sentence says. Never throws but std::bad_alloc.
std::optional<SentenceError> parse_sentence(std::string_view sentence, Rule& rule);
// "0-3", "8", "10-", "0-3, 8"; none where it is none of these.
std::optional<Spans> parse_spans(std::string_view text);
std::string format_spans(const Spans& spans);

// One line of the compiled form, which carries a rule into a trace, and back.
std::string compiled_line(const Rule& rule);
std::optional<Rule> rule_of_line(std::string_view file, int line, std::string_view compiled);

// As a person writes it.
std::string text_of(const Where& where);
std::string text_of(const std::vector<Where>& places);

// A built-in expectation that is switched off has a compiled line, too.
std::string compiled_off(std::string_view expectation);
std::optional<std::string> off_of_line(std::string_view compiled);

}  // namespace devsan::rules
