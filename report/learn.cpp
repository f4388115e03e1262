#include "report/learn.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "rules/rule.h"

namespace devsan::report {
namespace {

constexpr std::uint32_t kLeastSteps = 3;  // of an optimizer, to tell what a step does not do
constexpr std::size_t kMostSentences = 400;
constexpr std::size_t kMostAlternatives = 6;

// Where a tensor was all the time; none for one that came and went, or was a mere placeholder.
std::optional<std::string> lasting_place(const KeptTensor& track) {
  std::optional<std::string> place;
  for (const Stay& stay : track.stays) {
    if (stay.has(trace::kPlaceEmpty) || stay.in_set_up) continue;
    if (place && *place != stay.text()) return std::nullopt;
    place = stay.text();
  }
  return place;
}

// A variable of a function, or an entry of what one holds, that nothing trains: a batch, a prediction. Whether a look
// meets it is chance.
bool is_passing(const KeptTensor& track) {
  if (track.kind != trace::PlaceKind::attribute || track.path().find('.') != std::string::npos) return false;
  return std::ranges::none_of(track.stays, [](const Stay& stay) { return stay.has(trace::kPlaceTrained); });
}

bool is_number(const std::string& text) {
  return !text.empty() && text.size() < 9 && text.find_first_not_of("0123456789") == std::string::npos;
}

// "layers.3[0]" as "layers", ".3", "[0]": together they are the name.
std::vector<std::string> components(const std::string& name) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find_first_of(".[", begin + 1), name.size());
    parts.push_back(name.substr(begin, end - begin));
    begin = end;
  }
  return parts;
}

// What stands in a component, and what is around that: "." and "3"; "[", "0" and "]".
struct Component {
  std::string before;
  std::string word;
  std::string after;
  explicit Component(const std::string& text) {
    const std::size_t begin = text.find_first_not_of(".[");
    if (begin == std::string::npos) {
      before = text;
      return;
    }
    const std::size_t end = text.ends_with(']') ? text.size() - 1 : text.size();
    before = text.substr(0, begin);
    word = text.substr(begin, end - begin);
    after = text.substr(end);
  }
};

// All names, by their components.
struct Names {
  std::map<std::string, std::unique_ptr<Names>> below;
  std::set<std::string> places;  // of all tensors in here; "" of one that has none

  void add(const std::string& name, const std::string& place) {
    Names* at = this;
    at->places.insert(place);
    for (const std::string& part : components(name)) {
      std::unique_ptr<Names>& next = at->below[part];
      if (next == nullptr) next = std::make_unique<Names>();
      at = next.get();
      at->places.insert(place);
    }
  }
};

struct Part {
  Component component;
  std::string place;
};

// "{0-3}", "{0-1,5}" is "{0-1}" and "5": patterns of the numbers that are at one place.
std::vector<std::string> number_patterns(std::vector<long> numbers) {
  std::ranges::sort(numbers);
  std::vector<std::string> patterns;
  for (std::size_t k = 0; k < numbers.size();) {
    std::size_t end = k;
    while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1) ++end;
    const std::string first = std::to_string(numbers[k]);
    patterns.push_back(end == k ? first : "{" + first + "-" + std::to_string(numbers[end]) + "}");
    k = end + 1;
  }
  return patterns;
}

class Writer {
 public:
  Writer(std::string what, std::size_t most_alternatives)
      : what_(std::move(what)), most_alternatives_(most_alternatives) {}

  void write(const Names& names, const std::string& path) {
    if (names.places.size() == 1) return sentence(path, *names.places.begin());
    std::map<std::pair<std::string, std::string>, std::vector<Component>> uniform;  // by what is around, and place
    std::vector<const std::pair<const std::string, std::unique_ptr<Names>>*> mixed;
    for (const auto& entry : names.below) {
      const Component component(entry.first);
      if (entry.second->places.size() == 1) {
        const std::string key = component.before + (is_number(component.word) ? "#" : "");
        uniform[{key, *entry.second->places.begin()}].push_back(component);
      } else {
        mixed.push_back(&entry);
      }
    }
    for (const auto& [key, group] : uniform) write_group(path, group, key.second);
    for (const auto* entry : mixed) write(*entry->second, path + entry->first);
  }

  std::vector<std::string> take() { return std::move(sentences_); }

 private:
  void write_group(const std::string& path, const std::vector<Component>& group, const std::string& place) {
    const Component& first = group.front();
    if (is_number(first.word)) {
      std::vector<long> numbers;
      for (const Component& one : group) numbers.push_back(std::stol(one.word));
      for (const std::string& text : number_patterns(numbers)) {
        sentence(path + first.before + text + first.after, place);
      }
      return;
    }
    if (group.size() == 1 || group.size() > most_alternatives_) {
      for (const Component& one : group) sentence(path + one.before + one.word + one.after, place);
      return;
    }
    std::string words;
    for (const Component& one : group) words += (words.empty() ? "" : ",") + one.word;
    sentence(path + first.before + "{" + words + "}" + first.after, place);
  }

  void sentence(const std::string& pattern, const std::string& place) {
    const bool usable = pattern.find_first_of(" \t\"\\") == std::string::npos;
    if (place.empty() || !usable || sentences_.size() >= kMostSentences) return;
    std::string text = what_;
    if (!pattern.empty()) text += (text.empty() ? "" : " of ") + pattern;
    if (text.empty()) text = "*";
    rules::Rule rule;
    text += " on " + place;
    if (!rules::parse_sentence(text, rule)) sentences_.push_back(std::move(text));
  }

  std::string what_;
  std::size_t most_alternatives_;
  std::vector<std::string> sentences_;
};

bool is_state(const KeptTensor& track) {
  return track.kind == trace::PlaceKind::state;
}

// Whether all state is, at each step, where its parameter is.
bool state_is_beside(const std::vector<KeptTensor>& tracks) {
  std::map<std::string, const KeptTensor*> parameters;
  for (const KeptTensor& track : tracks) {
    if (!is_state(track)) parameters.emplace(track.path(), &track);
  }
  for (const KeptTensor& track : tracks) {
    if (!is_state(track)) continue;
    const auto about = parameters.find(track.owner);
    if (about == parameters.end()) return false;
    for (const Stay& stay : track.stays) {
      const Stay* beside = about->second->at(stay.step);
      if (stay.has(trace::kPlaceScalar)) continue;
      if (beside == nullptr || beside->device != stay.device) return false;
    }
  }
  return true;
}

std::vector<std::string> sentences_about(const std::vector<KeptTensor>& tracks, const std::string& what,
                                         rules::KindMask kinds) {
  Names names;
  for (const KeptTensor& track : tracks) {
    if ((kinds & rules::mask_of(track.kind)) == 0 || is_passing(track)) continue;
    if (is_state(track) && track.stays.back().has(trace::kPlaceScalar)) continue;
    names.add(track.path(), lasting_place(track).value_or(""));
  }
  // An attribute has a rule of its own, so that a notice tells when it is gone: a program's next version renames them.
  Writer writer(what, kinds == rules::mask_of(trace::PlaceKind::attribute) ? 1 : kMostAlternatives);
  if (!names.places.empty()) writer.write(names, "");
  return writer.take();
}

void append_sentences(std::vector<std::string>& all, std::vector<std::string> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

std::string with_device(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    const std::size_t end = at + from.size();
    const bool whole = end == text.size() || text[end] == ' ';
    if (whole) text.replace(at, from.size(), to);
  }
  return text;
}

bool has_traffic(const Report& report, Kind kind, trace::Phase phase) {
  return std::ranges::any_of(report.findings,
                             [&](const Finding& finding) { return finding.kind == kind && finding.phase == phase; });
}

std::string in_quotes(const std::string& sentence) {
  return "\"" + sentence + "\"";
}

}  // namespace

std::vector<std::string> Learner::sentences_of(const std::vector<KeptTensor>& tracks,
                                               const std::vector<KeptTensor>& moving) {
  using trace::PlaceKind;
  std::vector<std::string> all;
  append_sentences(all, sentences_about(moving, "parameters and buffers",
                                        rules::mask_of(PlaceKind::parameter) | rules::mask_of(PlaceKind::buffer)));
  append_sentences(all, sentences_about(moving, "attributes", rules::mask_of(PlaceKind::attribute)));
  if (std::ranges::any_of(tracks, is_state)) {
    if (state_is_beside(tracks)) {
      all.emplace_back("optimizer state beside its parameter");
    } else {
      append_sentences(all, sentences_about(moving, "optimizer state", rules::mask_of(PlaceKind::state)));
    }
  }
  return all;
}

void Learner::add(const trace::TraceFile& trace) {
  optimizer_steps_ = std::max(optimizer_steps_, trace.header().optimizer_steps);
  std::vector<KeptTensor> tracks = kept_tensors_of(trace);
  if (tracks.empty()) return;
  Process process{trace.rank().value_or(-1), trace.header().local_rank, {}, true};
  const std::string own = "cuda:" + std::to_string(process.local_rank);
  for (const KeptTensor& track : tracks) {
    for (const Stay& stay : track.stays) {
      process.by_local_rank = process.by_local_rank && (!stay.device.starts_with("cuda:") || stay.device == own);
    }
  }
  process.sentences = sentences_of(tracks, moving_tensors_of(trace));
  processes_.push_back(std::move(process));
}

std::string Learner::rules(const Report& report) const {
  const auto by_local_rank = [](const Process& process) { return process.by_local_rank && process.local_rank >= 0; };
  const bool relative = std::ranges::all_of(processes_, by_local_rank);
  std::map<std::string, std::set<int>> ranks;
  std::vector<std::string> order;
  std::set<int> all;
  for (const Process& process : processes_) {
    all.insert(process.rank);
    for (std::string sentence : process.sentences) {
      const std::string own = "cuda:" + std::to_string(process.local_rank);
      if (relative) sentence = with_device(std::move(sentence), own, "cuda:local_rank");
      if (!ranks.contains(sentence)) order.push_back(sentence);
      ranks[sentence].insert(process.rank);
    }
  }
  std::vector<std::string> common;
  for (const std::string& sentence : order) {
    if (ranks[sentence] == all) common.push_back(sentence);
  }
  if (optimizer_steps_ >= kLeastSteps) {
    for (const trace::Phase phase : {trace::Phase::forward, trace::Phase::backward}) {
      const std::string in = " in phase " + std::string(name_of(phase));
      if (!has_traffic(report, Kind::implicit_sync, phase)) common.push_back("no host sync" + in);
      if (!has_traffic(report, Kind::implicit_transfer, phase)) common.push_back("no transfer" + in);
    }
  }
  std::string text = "# What a run kept. docs/rules.md says how rules are written.\nexpect = [\n";
  for (const std::string& sentence : common) text += "  " + in_quotes(sentence) + ",\n";
  text += "]\n";
  for (const std::string& sentence : order) {
    if (ranks[sentence] == all) continue;
    rules::Spans spans;
    for (const int rank : ranks[sentence]) {
      if (!spans.empty() && spans.back().second + 1 == rank) {
        spans.back().second = rank;
      } else {
        spans.emplace_back(rank, rank);
      }
    }
    text += "\n[[rule]]\nexpect = " + in_quotes(sentence) + "\nranks = " + in_quotes(rules::format_spans(spans)) + "\n";
  }
  return text;
}

}  // namespace devsan::report
