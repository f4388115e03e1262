// The sentences of rules: "experts.{0-3} on cuda:1", "optimizer state beside its parameter", "no host sync in phase
// forward".
#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include "doctor/near_miss.h"
#include "rules/pattern.h"
#include "rules/rule.h"

namespace devsan::rules {
namespace {

struct Word {
  std::size_t at;
  std::string_view text;
};

struct KindWord {
  std::string_view word;
  KindMask kinds;
};

constexpr KindMask kTensors =
    mask_of(trace::PlaceKind::parameter) | mask_of(trace::PlaceKind::buffer) | mask_of(trace::PlaceKind::attribute);
constexpr std::array<KindWord, 4> kKindWords = {{{"parameters", mask_of(trace::PlaceKind::parameter)},
                                                 {"buffers", mask_of(trace::PlaceKind::buffer)},
                                                 {"attributes", mask_of(trace::PlaceKind::attribute)},
                                                 {"tensors", kTensors}}};
constexpr std::array<std::pair<std::string_view, trace::Phase>, 6> kPhases = {{{"forward", trace::Phase::forward},
                                                                               {"backward", trace::Phase::backward},
                                                                               {"optimizer", trace::Phase::optimizer},
                                                                               {"data", trace::Phase::data},
                                                                               {"checkpoint", trace::Phase::checkpoint},
                                                                               {"other", trace::Phase::other}}};
constexpr std::array<std::string_view, 8> kDevices = {"cpu", "cuda", "meta", "xpu", "mps", "hpu", "npu", "mtia"};
constexpr std::array<std::pair<std::string_view, unsigned>, 7> kUnits = {
    {{"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"K", 10}, {"M", 20}, {"G", 30}}};

// A text of several lines has them, too, and those of Windows end by \r\n.
constexpr std::string_view kSpaces = " \t\r\n";

std::vector<Word> words_of(std::string_view text) {
  std::vector<Word> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = text.find_first_not_of(kSpaces, at);
    if (begin == text.npos) break;
    at = std::min(text.find_first_of(kSpaces, begin), text.size());
    words.push_back({begin, text.substr(begin, at - begin)});
  }
  return words;
}

std::string quoted(std::string_view text) {
  constexpr std::size_t kMost = 60;
  return "'" + std::string(text.substr(0, kMost)) + (text.size() > kMost ? "…'" : "'");
}

class SentenceParser {
 public:
  SentenceParser(std::string_view text, Rule& rule) : words_(words_of(text)), end_(text.size()), rule_(rule) {}

  std::optional<SentenceError> run() {
    if (words_.empty()) return SentenceError{0, "the sentence is empty"};
    const bool forbids = is("no");
    forbids ? forbidden() : expected();
    if (!error_ && at_ < words_.size()) fail("nothing is expected behind this: " + quoted(words_[at_].text));
    return error_;
  }

 private:
  bool is(std::string_view word) const { return at_ < words_.size() && words_[at_].text == word; }
  bool take(std::string_view word) {
    if (error_ || !is(word)) return false;
    ++at_;
    return true;
  }
  std::string_view word() const { return at_ < words_.size() ? words_[at_].text : std::string_view(); }
  void fail(std::string text) {
    if (!error_) error_ = SentenceError{at_ < words_.size() ? words_[at_].at : end_, std::move(text)};
  }
  void want(std::string_view what, const std::vector<std::string>& known) {
    const std::string found = at_ < words_.size() ? " stands " + quoted(word()) : " the sentence ends";
    fail("where " + std::string(what) + " is expected," + found + doctor::did_you_mean(word(), known));
  }

  void forbidden() {
    ++at_;
    if (take("host")) {
      if (!take("sync")) return want("'sync'", {"sync"});
      rule_.about = About::sync;
    } else if (take("transfer")) {
      rule_.about = About::transfer;
      if (take("over")) size();
    } else {
      return want("'host sync' or 'transfer'", {"host", "transfer"});
    }
    if (error_ || at_ == words_.size()) return;
    if (!take("in") || !take("phase")) return want("'in phase …'", {"in", "phase", "over"});
    std::vector<std::string> known;
    for (const auto& [name, phase] : kPhases) {
      known.emplace_back(name);
      if (!take(name)) continue;
      rule_.phase = phase;
      return;
    }
    want("a phase (forward, backward, optimizer, data, checkpoint, other)", known);
  }

  void size() {
    std::string_view text = word();
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return want("a size such as 1 MiB", {});
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    ++at_;
    if (text.empty()) {
      text = word();
      if (at_ < words_.size()) ++at_;
    }
    const auto unit = std::ranges::find(kUnits, text, [](const auto& known) { return known.first; });
    if (unit == kUnits.end() || number > (UINT64_MAX >> unit->second)) {
      --at_;
      return want("a unit (B, KiB, MiB, GiB)", {"KiB", "MiB", "GiB"});
    }
    rule_.over = number << unit->second;
  }

  void expected() {
    kinds();
    if (error_) return;
    if (!is("on") && !is("beside") && at_ < words_.size()) pattern();
    if (error_) return;
    if (rule_.kinds == 0 && rule_.about != About::activations) rule_.kinds = kTensors;
    if (take("beside")) return beside();
    if (is("of") || is("and")) return no_kind();
    if (!take("on")) return want("'on' or 'beside'", {"on", "beside"});
    if (take("one")) {
      if (!take("device")) return want("'device'", {"device"});
      if (rule_.about == About::activations) return fail("activations are expected on devices that are named");
      rule_.about = About::one_device;
      return;
    }
    places();
  }

  // "weights of head": only a kind of tensors stands before these words.
  void no_kind() {
    --at_;
    fail(quoted(word()) + " is no kind of tensors (parameters, buffers, attributes, optimizer state, activations)" +
         doctor::did_you_mean(word(), kinds_of_tensors()));
  }

  static std::vector<std::string> kinds_of_tensors() {
    return {"parameters", "buffers", "attributes", "tensors", "optimizer", "activations"};
  }

  // "parameters and buffers of", "optimizer state of", "activations of"; nothing where the sentence begins with a name.
  void kinds() {
    for (bool more = true; more && !error_;) {
      const auto known = std::ranges::find(kKindWords, word(), &KindWord::word);
      if (known != kKindWords.end()) {
        rule_.kinds |= known->kinds;
        ++at_;
      } else if (take("activations")) {
        rule_.about = About::activations;
      } else if (take("optimizer")) {
        if (!take("state")) return want("'state'", {"state"});
        rule_.kinds |= mask_of(trace::PlaceKind::state);
      } else if (rule_.kinds != 0) {
        return want("a kind of tensors", kinds_of_tensors());
      } else {
        return;
      }
      more = take("and");
    }
    if (rule_.about == About::activations && rule_.kinds != 0) return fail("activations are expected by themselves");
    if (is("on") || is("beside") || take("of")) return;
    want("'of', 'on' or 'beside'", {"of", "on", "beside", "and"});
  }

  void pattern() {
    Pattern::Error error;
    if (!Pattern::parse(word(), &error)) {
      error_ = SentenceError{words_[at_].at + error.at, error.text};
      return;
    }
    rule_.pattern = word();
    ++at_;
  }

  void beside() {
    if (!take("its") || !take("parameter")) return want("'its parameter'", {"its", "parameter"});
    if (rule_.kinds != mask_of(trace::PlaceKind::state))
      return fail("only optimizer state has a parameter to be beside");
    rule_.about = About::beside_parameter;
  }

  void places() {
    for (bool more = true; more && !error_; more = take("or")) {
      Where where;
      device(where);
      where.pinned = take("pinned");
      if (where.pinned && where.device != "cpu") return --at_, fail("only memory of the cpu is pinned");
      if (where.pinned && rule_.about == About::activations) {
        return --at_, fail("whether activations are pinned is not known");
      }
      rule_.places.push_back(where);
    }
  }

  void device(Where& where) {
    const std::string_view text = word();
    const std::size_t colon = text.find(':');
    const std::string_view type = text.substr(0, colon);
    if (std::ranges::find(kDevices, type) == kDevices.end()) {
      const std::vector<std::string> known(kDevices.begin(), kDevices.end());
      return fail(text.empty()
                      ? "where a device is expected, the sentence ends"
                      : quoted(text) + " is no device such as cpu or cuda:1" + doctor::did_you_mean(type, known));
    }
    if (colon != text.npos) {
      const std::string_view index = text.substr(colon + 1);
      const bool number = !index.empty() && index.size() < 4 && index.find_first_not_of("0123456789") == index.npos;
      if (!number && index != "local_rank" && index != "rank") {
        return fail("behind the colon of a device stands its number, local_rank or rank" +
                    doctor::did_you_mean(index, {"local_rank", "rank"}));
      }
    }
    where.device = text;
    ++at_;
  }

  const std::vector<Word> words_;
  const std::size_t end_;
  Rule& rule_;
  std::size_t at_ = 0;
  std::optional<SentenceError> error_;
};

}  // namespace

std::optional<SentenceError> parse_sentence(std::string_view sentence, Rule& rule) {
  rule.sentence.clear();  // in one line, however a file spaces it
  for (const Word& word : words_of(sentence)) {
    rule.sentence += (rule.sentence.empty() ? "" : " ") + std::string(word.text);
  }
  if (rule.name.empty()) rule.name = rule.sentence;
  return SentenceParser(sentence, rule).run();
}

std::string text_of(const Where& where) {
  return where.device + (where.pinned ? " pinned" : "");
}

std::string text_of(const std::vector<Where>& places) {
  std::string text;
  for (const Where& where : places) text += (text.empty() ? "" : " or ") + text_of(where);
  return text;
}

}  // namespace devsan::rules
