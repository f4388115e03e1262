#include "report/model/finding.h"

namespace devsan::report {

// No switch here has a default: the compiler warns where a kind was added and its name was not. What lies behind the
// switch answers for a value that a damaged trace brought along.

std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warning:
      return "warning";
    case Severity::note:
      return "note";
  }
  return "note";
}

std::string_view name_of(Kind kind) {
  return trace::kind_name(kind);
}

std::string_view meaning_of(Kind kind) {
  switch (kind) {
#define DEVSAN_FINDING_KIND(enumerator, name, severity, meaning) \
  case Kind::enumerator:                                         \
    return meaning;
#include "trace/finding_kinds.def"
#undef DEVSAN_FINDING_KIND
  }
  return "";
}

Severity default_severity(Kind kind) {
  switch (kind) {
#define DEVSAN_FINDING_KIND(enumerator, name, severity, meaning) \
  case Kind::enumerator:                                         \
    return Severity::severity;
#include "trace/finding_kinds.def"
#undef DEVSAN_FINDING_KIND
  }
  return Severity::note;
}

std::string_view name_of(trace::Phase phase) {
  switch (phase) {
    case trace::Phase::other:
      return "other";
    case trace::Phase::forward:
      return "forward";
    case trace::Phase::backward:
      return "backward";
    case trace::Phase::optimizer:
      return "optimizer";
    case trace::Phase::data:
      return "data";
    case trace::Phase::checkpoint:
      return "checkpoint";
  }
  return "other";
}

std::string_view name_of(trace::How how) {
  switch (how) {
    case trace::How::created:
      return "created";
    case trace::How::moved:
      return "moved";
    case trace::How::derived:
      return "derived";
    case trace::How::called:
      return "called";
  }
  return "derived";
}

std::string_view name_of(trace::NameKind kind) {
  switch (kind) {
    case trace::NameKind::unknown:
      return "unknown";
    case trace::NameKind::parameter:
      return "parameter";
    case trace::NameKind::buffer:
      return "buffer";
    case trace::NameKind::attribute:
      return "attribute";
    case trace::NameKind::local:
      return "local";
    case trace::NameKind::temporary:
      return "temporary";
  }
  return "unknown";
}

std::string_view name_of(trace::SeriesClock clock) {
  switch (clock) {
#define DEVSAN_SERIES_CLOCK(enumerator, number, name, step, text) \
  case trace::SeriesClock::enumerator:                            \
    return name;
#include "trace/series_clocks.def"
#undef DEVSAN_SERIES_CLOCK
  }
  return "iterations";
}

std::string_view step_of(trace::SeriesClock clock) {
  switch (clock) {
#define DEVSAN_SERIES_CLOCK(enumerator, number, name, step, text) \
  case trace::SeriesClock::enumerator:                            \
    return step;
#include "trace/series_clocks.def"
#undef DEVSAN_SERIES_CLOCK
  }
  return "step";
}

std::string_view name_of(trace::LiveKind kind) {
  switch (kind) {
    case trace::LiveKind::other:
      break;
#define DEVSAN_LIVE_KIND(enumerator, number, name, text) \
  case trace::LiveKind::enumerator:                      \
    return name;
#include "trace/live_kinds.def"
#undef DEVSAN_LIVE_KIND
  }
  return "other";
}

std::string_view name_of(Confidence confidence) {
  return confidence == Confidence::likely ? "likely" : "possible";
}

std::string_view name_of(Silence::By by) {
  switch (by) {
    case Silence::By::suppression:
      return "suppression";
    case Silence::By::allowed:
      return "allow";
    case Silence::By::expected:
      return "expect";
  }
  return "suppression";
}

std::vector<int> ranks_in(const CollectiveStory& story, RankTurn state) {
  std::vector<int> ranks;
  for (const RankInCollective& turn : story.per_rank) {
    if (turn.state == state) ranks.push_back(turn.rank);
  }
  return ranks;
}

std::string_view name_of(RankTurn turn) {
  switch (turn) {
    case RankTurn::waiting:
      return "waiting";
    case RankTurn::never_entered:
      return "never_entered";
    case RankTurn::finished:
      return "finished";
    case RankTurn::entered_other:
      return "entered_other";
    case RankTurn::late:
      return "late";
    case RankTurn::no_trace:
      return "no_trace";
    case RankTurn::gone:
      return "gone";
  }
  return "waiting";
}

void set_process(Finding& finding, std::uint32_t pid, std::optional<int> rank) {
  finding.pid = pid;
  finding.rank = rank;
  if (rank) finding.ranks = {*rank};
}

}  // namespace devsan::report
