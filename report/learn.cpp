#include "report/learn.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "report/findings/build_placements.h"
#include "rules/rule.h"

namespace devsan::report {
namespace {

constexpr std::uint32_t kLeastSteps = 3;  // of an optimizer, to tell what a step does not do
constexpr char kBesideParameter[] = "optimizer state beside its parameter";
constexpr std::size_t kMostSentences = 400;
constexpr std::size_t kMostAlternatives = 6;
constexpr std::size_t kMostTrials = 4000;  // of sentences, for a run with many names of which one is a part of another

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
  using Entry = std::pair<const std::string, std::unique_ptr<Names>>;
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

// The tensors of one process, and whether it kept what a sentence says: a pattern may be the name of more than it was
// made from.
class Evidence {
 public:
  explicit Evidence(const trace::TraceFile& trace)
      : trace_(trace), tracks_(kept_tensors_of(trace)), moving_(moving_tensors_of(trace)) {}

  const std::vector<KeptTensor>& tracks() const { return tracks_; }
  const std::vector<KeptTensor>& moving() const { return moving_; }

  bool shows(const std::string& sentence) const {
    rules::Rule rule;
    return !rules::parse_sentence(sentence, rule) && keeps_rule(trace_, tracks_, moving_, rule);
  }

 private:
  const trace::TraceFile& trace_;
  std::vector<KeptTensor> tracks_;
  std::vector<KeptTensor> moving_;
};

// What the sentences of a writer are about.
struct Subject {
  std::string words;  // "parameters and buffers"
  std::size_t most_alternatives = kMostAlternatives;
  bool may_be_bare = true;  // without a name
};

class Writer {
 public:
  Writer(const Evidence& evidence, Subject subject) : evidence_(evidence), subject_(std::move(subject)) {}

  // Sentences about all names below a path. Where the process has not kept one, those about its parts.
  void write(const Names& names, const std::string& path) {
    if (names.places.size() == 1) {
      const std::string& place = *names.places.begin();
      if (place.empty() || sentence(path, place)) return;
    }
    std::map<std::pair<std::string, std::string>, std::vector<Child>> uniform;  // by what is around, and place
    std::vector<const Names::Entry*> mixed;
    for (const Names::Entry& entry : names.below) {
      const Component component(entry.first);
      if (entry.second->places.size() == 1) {
        const std::string key = component.before + (is_number(component.word) ? "#" : "");
        uniform[{key, *entry.second->places.begin()}].push_back({component, &entry});
      } else {
        mixed.push_back(&entry);
      }
    }
    for (const auto& [key, group] : uniform) write_group(path, group, key.second);
    for (const Names::Entry* entry : mixed) write(*entry->second, path + entry->first);
  }

  std::vector<std::string> take() { return std::move(sentences_); }

 private:
  struct Child {
    Component component;
    const Names::Entry* entry;
  };

  void write_each(const std::string& path, const std::vector<Child>& group) {
    for (const Child& child : group) write(*child.entry->second, path + child.entry->first);
  }

  void write_group(const std::string& path, const std::vector<Child>& group, const std::string& place) {
    const Component& first = group.front().component;
    if (group.size() == 1 || place.empty()) return write_each(path, group);
    if (is_number(first.word)) return write_numbers(path, group, place);
    if (group.size() > subject_.most_alternatives) return write_each(path, group);
    std::string words;
    for (const Child& child : group) words += (words.empty() ? "" : ",") + child.component.word;
    if (!sentence(path + first.before + "{" + words + "}" + first.after, place)) write_each(path, group);
  }

  void write_numbers(const std::string& path, const std::vector<Child>& group, const std::string& place) {
    const Component& first = group.front().component;
    std::vector<long> numbers;
    for (const Child& child : group) numbers.push_back(std::stol(child.component.word));
    std::vector<std::string> texts;
    for (const std::string& text : number_patterns(numbers)) texts.push_back(path + first.before + text + first.after);
    const std::size_t before = sentences_.size();
    const auto written = [&](const std::string& text) { return sentence(text, place); };
    if (std::ranges::all_of(texts, written)) return;
    sentences_.resize(before);
    write_each(path, group);
  }

  // False where the process has not kept it.
  bool sentence(const std::string& pattern, const std::string& place) {
    const bool usable = pattern.find_first_of(" \t\"\\") == std::string::npos;
    if (pattern.empty() && !subject_.may_be_bare) return false;
    if (!usable || sentences_.size() >= kMostSentences || ++trials_ > kMostTrials) return true;
    std::string text = subject_.words + (pattern.empty() ? "" : " of " + pattern) + " on " + place;
    if (!evidence_.shows(text)) return false;
    sentences_.push_back(std::move(text));
    return true;
  }

  const Evidence& evidence_;
  const Subject subject_;
  std::vector<std::string> sentences_;
  std::size_t trials_ = 0;
};

bool is_state(const KeptTensor& track) {
  return track.kind == trace::PlaceKind::state;
}

// Whether all state has a parameter that is seen, and was beside it.
bool state_is_beside(const Evidence& evidence) {
  std::set<std::string> parameters;
  for (const KeptTensor& track : evidence.tracks()) {
    if (!is_state(track)) parameters.insert(track.path());
  }
  const auto has_parameter = [&](const KeptTensor& track) {
    return !is_state(track) || parameters.contains(track.owner);
  };
  return std::ranges::all_of(evidence.tracks(), has_parameter) && evidence.shows(kBesideParameter);
}

std::vector<std::string> sentences_about(const Evidence& evidence, Subject subject, rules::KindMask kinds) {
  Names names;
  for (const KeptTensor& track : evidence.moving()) {
    if ((kinds & rules::mask_of(track.kind)) == 0) continue;
    if (is_state(track) && track.stays.back().has(trace::kPlaceScalar)) continue;
    if (is_passing(track)) {
      subject.may_be_bare = false;  // another run may have others
    } else {
      names.add(track.path(), lasting_place(track).value_or(""));
    }
  }
  Writer writer(evidence, std::move(subject));
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

std::vector<std::string> sentences_of(const Evidence& evidence) {
  using trace::PlaceKind;
  std::vector<std::string> all;
  append_sentences(all, sentences_about(evidence, {"parameters and buffers"},
                                        rules::mask_of(PlaceKind::parameter) | rules::mask_of(PlaceKind::buffer)));
  // An attribute has a rule of its own, so that a notice tells when it is gone: a program's next version renames them.
  append_sentences(all, sentences_about(evidence, {"attributes", 1}, rules::mask_of(PlaceKind::attribute)));
  if (std::ranges::none_of(evidence.tracks(), is_state)) return all;
  if (state_is_beside(evidence)) {
    all.emplace_back(kBesideParameter);
  } else {
    append_sentences(all, sentences_about(evidence, {"optimizer state"}, rules::mask_of(PlaceKind::state)));
  }
  return all;
}

bool has_traffic(const Report& report, Kind kind, trace::Phase phase) {
  return std::ranges::any_of(report.findings,
                             [&](const Finding& finding) { return finding.kind == kind && finding.phase == phase; });
}

std::string in_quotes(const std::string& sentence) {
  return "\"" + sentence + "\"";
}

}  // namespace

void Learner::add(const trace::TraceFile& trace) {
  optimizer_steps_ = std::max(optimizer_steps_, trace.header().optimizer_steps);
  const Evidence evidence(trace);
  if (evidence.tracks().empty()) return;
  Process process{trace.rank().value_or(-1), trace.header().local_rank, sentences_of(evidence), true};
  const std::string own = "cuda:" + std::to_string(process.local_rank);
  for (const KeptTensor& track : evidence.tracks()) {
    for (const Stay& stay : track.stays) {
      process.by_local_rank = process.by_local_rank && (!stay.device.starts_with("cuda:") || stay.device == own);
    }
  }
  processes_.push_back(std::move(process));
}

std::vector<Learner::Learned> Learner::learned() const {
  const auto by_local_rank = [](const Process& process) { return process.by_local_rank && process.local_rank >= 0; };
  const bool relative = std::ranges::all_of(processes_, by_local_rank);
  std::map<int, std::size_t> processes;  // by rank
  std::map<std::string, std::map<int, std::size_t>> keepers;
  std::vector<Learned> all;
  for (const Process& process : processes_) {
    ++processes[process.rank];
    for (std::string sentence : process.sentences) {
      const std::string own = "cuda:" + std::to_string(process.local_rank);
      if (relative) sentence = with_device(std::move(sentence), own, "cuda:local_rank");
      if (!keepers.contains(sentence)) all.push_back({sentence, {}});
      ++keepers[sentence][process.rank];
    }
  }
  for (Learned& one : all) {
    for (const auto& [rank, count] : keepers[one.sentence]) {
      if (count == processes[rank]) one.ranks.insert(rank);
    }
  }
  return all;
}

std::string Learner::rules(const Report& report) const {
  const std::vector<Learned> learned = this->learned();
  Ranks all;
  for (const Process& process : processes_) all.insert(process.rank);
  std::vector<std::string> common;
  for (const Learned& one : learned) {
    if (one.ranks == all) common.push_back(one.sentence);
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
  for (const auto& [sentence, ranks] : learned) {
    if (ranks == all) continue;
    rules::Spans spans;
    for (const int rank : ranks) {
      if (rank < 0) continue;  // no condition names processes without a rank
      if (!spans.empty() && spans.back().second + 1 == rank) {
        spans.back().second = rank;
      } else {
        spans.emplace_back(rank, rank);
      }
    }
    if (spans.empty()) continue;
    text += "\n[[rule]]\nexpect = " + in_quotes(sentence) + "\nranks = " + in_quotes(rules::format_spans(spans)) + "\n";
  }
  return text;
}

}  // namespace devsan::report
