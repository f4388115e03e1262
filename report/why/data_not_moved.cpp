// Data sets, loaders and generators hand out what is on the CPU, and leave it to the program to move it: the line to
// change is the one that takes it over, not the one that made it.
#include <algorithm>
#include <array>
#include <string_view>

#include "report/frames.h"
#include "report/statement_text.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"
#include "trace/function_names.h"
#include "trace/words.h"

namespace devsan::report::why {
namespace {

bool is_by_loader(const LineageStep& step) {
  return step.innermost.file.find("/torch/utils/data/") != std::string::npos;
}

// Made while a loop of the function asked for its next turn: by a loader, or by what the loop goes through.
const Frame* drawn_by_loop(const Operand& odd, const LineageStep& arrival, const Frame& taken) {
  if (const Evidence* loop = evidence_of(odd, trace::EvidenceKind::taken_in_loop_at)) return &loop->at;
  for (const LineageStep& step : odd.lineage) {
    const bool by_library = !same_line(step.innermost, step.at);
    if (by_library && is_loop(step.at) && same_function(step.at, taken)) return &step.at;
    if (is_by_loader(step) && same_line(step.at, taken)) return &step.at;  // `x, _ = next(iter(loader))`
  }
  if (arrival.calls.empty()) return nullptr;
  const Frame& caller = arrival.calls.front();
  return is_loop(caller) && same_function(caller, taken) ? &caller : nullptr;
}

// `image, label = test_data[0]`: an entry of what an object has made for itself.
bool is_entry_of_data(const LineageStep& arrival, const Frame& taken) {
  const bool kept = is_constructor(arrival.at) || arrival.at.function.ends_with("__getitem__");
  const auto assigned = split_assignment(taken.statement());
  if (!kept || arrival.at.function == "<module>" || !assigned || same_function(arrival.at, taken)) return false;
  // `self.queues["projection"]()` calls what is kept there.
  const bool called = assigned->value.find("](") != std::string_view::npos;
  return begins_with_entry(assigned->value) && !called && class_of(arrival.at) != class_of(taken);
}

// `ids = tokenizer(prompts)`: a function that is told no device has made it of Python's data, and the line that calls
// it gives it its name. A method of the same object knows the device of its object, and is the line to change itself.
// What it has computed is a result, and no data.
bool is_made_of_data(const Operand& odd, const Frame& taken, const Finding& finding) {
  constexpr std::array<std::string_view, 4> kMakers = {"tensor", "as_tensor", "LongTensor", "FloatTensor"};
  const LineageStep& arrival = odd.lineage.front();
  const auto called = std::ranges::find_if(
      arrival.calls, [](const Frame& call) { return call.function.find("<locals>") == std::string::npos; });
  // A module has weights, which know where they are.
  if (arrival.at.function.ends_with(".forward")) return false;
  return arrival.how == trace::How::created && trace::calls_method(arrival.at.statement(), kMakers) &&
         called != arrival.calls.end() && same_line(*called, taken) && !is_running(arrival.at, finding) &&
         class_of(arrival.at) != class_of(taken) && split_assignment(taken.statement());
}

// Whether a line goes through something, by a loop or in a comprehension.
bool goes_through(const Frame& place) {
  return is_loop(place) || place.statement().find(" for ") != std::string::npos;
}

// Whether a loop goes through what is written down in its head: "(train, val)".
bool goes_through_display(const Frame& loop) {
  const std::string_view statement = statement_of(loop.statement());
  const std::size_t in = statement.find(" in ");
  if (!is_loop(loop) || in == statement.npos) return false;
  const std::string_view through = statement.substr(in + 4);
  return (through.starts_with('(') || through.starts_with('[')) && through.find(" for ") == through.npos;
}

// The line that a DataLoader gave to what is made by a step: its own code, or a function that it calls.
const Frame* drawn_in_step(const LineageStep& step, const Finding& finding) {
  if (!is_changeable(step.at, finding)) return nullptr;
  if (is_by_loader(step)) return &step.at;
  if (step.calls.empty() || !goes_through(step.calls.front())) return nullptr;
  const std::string called = std::string(trace::own_name(step.at.function)) + "(";
  const bool by_name = step.calls.front().statement().find(called) != std::string::npos;
  return step.how == trace::How::derived && !by_name && !is_running(step.at, finding) ? &step.calls.front() : nullptr;
}

// The same, of data that the program keeps in a variable: `taken` is where it got them, before any loader.
const Frame* drawn_from_kept(const Operand& odd, const Frame& taken, const Finding& finding) {
  for (auto step = odd.lineage.begin(); step != odd.lineage.end(); ++step) {
    const Frame* drawn = drawn_in_step(*step, finding);
    if (drawn == nullptr) continue;
    const auto is_older = [&](const LineageStep& other) { return same_line(other.at, taken); };
    return std::any_of(step + 1, odd.lineage.end(), is_older) ? drawn : nullptr;
  }
  return nullptr;
}

Explanation of_drawn(const Frame& drawn, const Pair& pair, const Finding& finding) {
  const std::string edit = is_loop(drawn) ? "" : assigned_after_move(drawn, device_at(drawn, pair.wanted, finding));
  return Explanation{cause_at(drawn, pair.odd,
                              "This line takes the data that " + mention(pair.odd) +
                                  " is made of from a loader, on the CPU, and nothing moves it."),
                     Fix{drawn.file, drawn.line,
                         "Move it to " + pair.wanted.device + " where it is taken" +
                             (edit.empty() ? ", behind this line." : ": `" + edit + "`.")}};
}

// `for batch in loader: loss = model(**batch)`, or `batch, index, _ = next(batches)`: what the line draws is a
// dictionary, a list or an object that keeps it.
std::optional<Explanation> drawn_in_container(const Pair& pair, const Finding& finding) {
  const Evidence* drawn = place_of(pair.odd, trace::EvidenceKind::drawn_within_at, finding);
  if (drawn == nullptr || pair.odd.lineage.empty()) return std::nullopt;
  // `for split in (train, val):` goes through what the program has by name.
  if (goes_through_display(drawn->at)) return std::nullopt;
  // What the loop's own function has made, it could have made where it should be.
  if (same_function(pair.odd.lineage.back().at, drawn->at) && drawn->at.function != "<module>") return std::nullopt;
  // What an object of the program makes itself is no data: `Cache(n, device=None)`, whose caller could have said where.
  const LineageStep& made = pair.odd.lineage.back();
  const Evidence* stored = place_of(pair.odd, trace::EvidenceKind::attribute_set_at, finding);
  const bool own = stored != nullptr && same_line(stored->at, made.at) && own_function(made.at) == "__init__";
  if (own && evidence_of(pair.odd, trace::EvidenceKind::default_stands_at) != nullptr) return std::nullopt;
  const std::string batch = "`" + drawn->text + "`";
  return Explanation{
      cause_at(drawn->at, pair.odd,
               mention_first(pair.odd) + " comes from what is in " + batch + ", which this " +
                   (is_loop(drawn->at) ? "loop" : "line") + " takes from data on the CPU, and nothing moves it."),
      Fix{drawn->at.file, drawn->at.line,
          "Move the tensors in " + batch + " to " + pair.wanted.device + " behind this line, before they are used."}};
}

// `update_bn(self.loader, model)`: a function of torch's goes through a loader that it is given, and moves nothing
// unless it is told a device.
std::optional<Explanation> drawn_by_library(const Pair& pair, const Finding& finding) {
  const auto drawn = std::ranges::find_if(
      pair.odd.lineage, [&](const LineageStep& step) { return is_by_loader(step) && is_running(step.at, finding); });
  const Evidence* given = place_of(pair.odd, trace::EvidenceKind::given_at, finding);
  if (drawn == pair.odd.lineage.end() || given == nullptr || !same_line(given->at, drawn->at)) return std::nullopt;
  if (is_loop(given->at)) return std::nullopt;
  return Explanation{
      cause_at(given->at, pair.odd,
               "This call goes through `" + given->text +
                   "`, whose data are on the CPU, and nothing moves them: " + mention(pair.odd) + " comes from there."),
      Fix{given->at.file, given->at.line,
          "Tell the call the device, if it takes one; or give it data on " + pair.wanted.device + "."}};
}

// `batch = default_collate([data[0]])`: what a loader would do, and a training loop would move.
std::optional<Explanation> collated_by_hand(const Pair& pair, const Finding& finding) {
  const auto collates = [&](const LineageStep& step) {
    return step.innermost.file.find("/torch/utils/data/_utils/collate.py") != std::string::npos &&
           is_changeable(step.at, finding) && split_assignment(step.at.statement()) &&
           step.at.statement().find("collate(") != std::string::npos;
  };
  const auto found = std::ranges::find_if(pair.odd.lineage, collates);
  if (found == pair.odd.lineage.end()) return std::nullopt;
  return Explanation{
      cause_at(found->at, pair.odd,
               "This line makes a batch as a loader would, on the CPU, and nothing moves it: " + mention(pair.odd) +
                   " is in it."),
      Fix{found->at.file, found->at.line, "Move what is in the batch to " + pair.wanted.device + " behind this line."}};
}

}  // namespace

std::optional<Explanation> data_not_moved(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || is_weight(pair->odd) || !pair->odd.on_cpu() || !on_accelerator(pair->wanted)) return std::nullopt;
  if (!was_never_moved(pair->odd)) return std::nullopt;
  if (auto drawn = drawn_by_library(*pair, finding)) return drawn;
  if (auto collated = collated_by_hand(*pair, finding)) return collated;
  const Evidence* within = place_of(pair->odd, trace::EvidenceKind::drawn_within_at, finding);
  if (within != nullptr && !is_loop(within->at)) return drawn_in_container(*pair, finding);
  const Evidence* taken = place_of(pair->odd, trace::EvidenceKind::first_bound_at, finding);
  if (taken == nullptr) taken = perhaps_taken(pair->odd, finding);
  if (taken == nullptr) return drawn_in_container(*pair, finding);
  const LineageStep* arrival = arrival_of(pair->odd);
  if (arrival == nullptr) return std::nullopt;
  if (const Frame* drawn = drawn_from_kept(pair->odd, taken->at, finding)) return of_drawn(*drawn, *pair, finding);
  const Frame* loop = drawn_by_loop(pair->odd, *arrival, taken->at);
  const bool made = is_entry_of_data(*arrival, taken->at) || is_made_of_data(pair->odd, taken->at, finding);
  if (loop == nullptr && !made) return std::nullopt;
  std::string why = "`" + taken->text + "` gets its value here, from data on the CPU";
  if (loop != nullptr && !same_line(*loop, taken->at)) why += " that " + short_place(*loop) + " goes through";
  const std::string edit = assigned_after_move(taken->at, device_at(taken->at, pair->wanted, finding));
  return Explanation{
      cause_at(taken->at, pair->odd, why + ", and nothing moves it."),
      Fix{taken->at.file, taken->at.line,
          "Move it where it is taken" +
              (edit.empty() ? ": `" + taken->text + ".to('" + pair->wanted.device + "')`" : ": `" + edit + "`") + "."}};
}

}  // namespace devsan::report::why
