// `.cuda()` and `device="cuda"` mean the GPU that is current for the thread, mostly the first. In a process that works
// on another one, what says no number is the odd one out.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "report/frames.h"
#include "report/why/decision.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

bool means_current(const Frame& place) {
  return means_current_device(call_at(place));
}

// "cuda:1", `torch.device("cuda", index)`
bool says_number(const Frame& place) {
  const std::string& text = place.statement();
  return std::ranges::any_of(std::array<std::string_view, 3>{"cuda:", "\"cuda\", ", "'cuda', "},
                             [&](std::string_view one) { return text.find(one) != text.npos; });
}

// `model.to("cuda")`, `model.to(device="cuda")`
bool is_literal_place(const Frame& place) {
  const std::string call = call_at(place);
  return call.ends_with("\"cuda\")") || call.ends_with("'cuda')") || call.ends_with(".cuda()");
}

// `model.cuda()`, beside what was taken to a device that is named: the model was to go there, too.
const Frame* model_on_current_device(const Operand& weight, const Operand& other, const Finding& finding) {
  const LineageStep* move = newest_move_of(weight);
  if (move == nullptr || !is_weight(weight) || !moves_module(*move) || !is_changeable(move->at, finding))
    return nullptr;
  const auto told = decision_of(other, trace::EvidenceKind::device_from, finding);
  const LineageStep* brought = newest_move_of(other);
  if (brought == nullptr || moves_module(*brought) || (told && means_current(told->at))) return nullptr;
  // To a device that somebody names, which is not that of another value.
  const std::string call = call_at(brought->at);
  const std::string target = call.substr(std::min(call.find(".to("), call.size()));
  const bool other_place = !target.empty() && !means_current(brought->at) && !is_device_of_value(brought->at) &&
                           !(told && is_device_of_value(told->at));
  if (other_place && speaks_of_device(target) && call_at(move->at).ends_with(".cuda()")) return &move->at;
  // `module.to("cuda")` in a function, which is asked for a model, beside `images.to(second)` in its caller.
  if (other_place && is_literal_place(move->at) && !is_beginning(move->at)) return &move->at;
  // `module.to("cuda")`, beside what is made on a device that an attribute keeps with its number.
  return told && says_number(told->at) && means_current(move->at) ? &move->at : nullptr;
}

// `load_detector(device)` beside `Recognizer(place)`, in the function that was given both a device and its number: the
// innermost function that both devices come through is where they part. Null where there is none.
const Frame* parts_from(const Operand& operand, const Operand& other, const Finding& finding) {
  for (const Evidence& mine : operand.evidence) {
    if (!hands_device_on(mine, finding)) continue;
    const auto parts = [&](const Evidence& theirs) {
      return hands_device_on(theirs, finding) && same_function(theirs.at, mine.at) && !same_line(theirs.at, mine.at);
    };
    if (std::ranges::any_of(other.evidence, parts)) return &mine.at;
  }
  return nullptr;
}

// `weights = load_adapter(path)`: a library takes an accelerator by itself, and the call says none.
bool is_chosen_by_library(const LineageStep& arrival) {
  return !arrival.within.empty() && arrival.device != "cpu" && !names_device(arrival.at) &&
         !is_device_of_value(arrival.within.front());
}

// Where a tensor, no module, was put on the current GPU; or a call left the device at a default that means it.
struct Put {
  const Frame* at = nullptr;
  std::string argument;  // the device argument that the call leaves at its default; empty where there is none
};
Put on_current_device(const Operand& operand, const Finding& finding) {
  const auto decided = decision_of(operand, trace::EvidenceKind::device_from, finding);
  if (decided && (decided->standard == "\"cuda\"" || decided->standard == "'cuda'")) {
    return {&decided->at, decided->name};
  }
  // A call that says so to what makes it there, or to what calls that.
  if (decided && is_final(*decided) && means_current(decided->at)) return {&decided->at, ""};
  const LineageStep* arrival = arrival_of(operand);
  if (arrival == nullptr || !is_changeable(arrival->at, finding) || moves_module(*arrival)) return {};
  if (is_chosen_by_library(*arrival)) return {&arrival->at, ""};
  if (means_current(arrival->at)) return {&arrival->at, ""};
  return {};
}

// `where = "cuda" if x.is_cuda else "cpu"`, `where = layer.weight.device.type`: of a tensor's device this asks for the
// type alone. A module that goes back by that comes from the other device.
std::optional<Explanation> type_alone_asked(const Operand& there, const Operand& other, const Finding& finding) {
  const LineageStep* arrival = arrival_of(there);
  const auto decided = decision_of(there, trace::EvidenceKind::device_from, finding);
  if (!decided || arrival == nullptr) return std::nullopt;
  const std::string& text = decided->at.statement();
  const auto stands = [&](std::string_view part) { return text.find(part) != text.npos; };
  const bool type = keeps_type_alone(*decided);
  const bool literal = (stands(".is_cuda") || stands(".device.type")) && (stands("\"cuda\"") || stands("'cuda'"));
  if (!type && !literal) return std::nullopt;
  if (moves_module(*arrival) && (!type || !was_on(there, other.device))) return std::nullopt;
  return Explanation{cause_at(decided->at, there,
                              "This line asks a tensor whether it is on a GPU, and not on which: `" + decided->name +
                                  "` means the one that is current, so " + mention(there) + " comes to " +
                                  there.device + ". What it meets is on " + other.device + "."),
                     Fix{decided->at.file, decided->at.line, "Take the whole device of that tensor: `.device`."}};
}

Explanation left_at_default(const Put& put, const Operand& there, const Operand& other) {
  return {cause_at(*put.at, there,
                   mention_first(there) + " comes to the GPU that is current, " + there.device +
                       ": this call does not give `" + put.argument +
                       "`, whose default says no number. What it meets is on " + spoken_device(other.device) + "."),
          Fix{put.at->file, put.at->line,
              "Pass `" + put.argument + "` here: the device that the work is done on, " + spoken_device(other.device) +
                  "."}};
}

// `def spread(labels, device="cuda")`, which takes `labels.device` where it is given None: the caller has said nothing,
// and the default keeps the function from doing what it is made for.
std::optional<Explanation> kept_by_default(const Put& put, const Operand& there, const Operand& other,
                                           const Finding& finding) {
  const Evidence* stands = place_of(there, trace::EvidenceKind::default_stands_at, finding);
  if (stands == nullptr || stands->text.empty()) return std::nullopt;
  return Explanation{
      cause_at(stands->at, there,
               mention_first(there) + " comes to the GPU that is current, " + there.device +
                   ": that is what this default means, and " + short_place(*put.at) + " does not give `" +
                   put.argument + "`. What it meets is on " + spoken_device(other.device) + "."),
      Fix{stands->at.file, stands->at.line,
          "Let the default be None: the function takes `" + stands->text + "` then. Or pass `" + put.argument +
              "` in " + short_place(*put.at) + "."}};
}

Explanation handed_on_bare(const Frame& parting, const Put& put, const Operand& there, const Operand& other) {
  return {cause_at(parting, there,
                   mention_first(there) + " comes to the GPU that is current, " + there.device +
                       ": this line hands on what " + short_place(*put.at) +
                       " says, which has no number. What it meets is on " + other.device +
                       ", which this function knows as well."),
          Fix{parting.file, parting.line, "Hand on the device with its number here, " + other.device + "."}};
}

Explanation model_to_name(const Frame& moved, const Pair& pair) {
  const Frame& brought = newest_move_of(pair.odd)->at;
  return {cause_at(moved, pair.wanted,
                   "This line moves the model to the GPU that is current, " + pair.wanted.device +
                       ", since no number is given. " + mention_first(pair.odd) + " was taken to " + pair.odd.device +
                       ", which " + short_place(brought) + " names."),
          Fix{moved.file, moved.line,
              "Move the model to the same device as in " + short_place(brought) +
                  ", with `.to()`, instead of to the "
                  "current one."}};
}

// `spread(labels)` leaves the device at "cuda", and gives labels that are on the CPU: one call says both.
std::optional<Explanation> given_from_host(const Pair& pair, const Finding& finding) {
  const Put put = pair.odd.on_cpu() ? on_current_device(pair.wanted, finding) : Put{};
  const auto gives = [&](const Evidence& one) {
    return one.kind == trace::EvidenceKind::given_at && same_line(one.at, *put.at);
  };
  if (put.argument.empty() || std::ranges::none_of(pair.odd.evidence, gives)) return std::nullopt;
  auto kept = kept_by_default(put, pair.wanted, pair.odd, finding);
  return kept ? std::move(kept) : left_at_default(put, pair.wanted, pair.odd);
}

}  // namespace

std::optional<Explanation> current_device(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !on_accelerator(pair->wanted)) return std::nullopt;
  if (!on_accelerator(pair->odd)) return given_from_host(*pair, finding);
  if (const Frame* moved = model_on_current_device(pair->wanted, pair->odd, finding)) {
    return model_to_name(*moved, *pair);
  }
  if (auto asked = type_alone_asked(pair->odd, pair->wanted, finding)) return asked;
  if (auto asked = type_alone_asked(pair->wanted, pair->odd, finding)) return asked;
  const Put odd = on_current_device(pair->odd, finding);
  const Put wanted = on_current_device(pair->wanted, finding);
  if ((odd.at == nullptr) == (wanted.at == nullptr)) return std::nullopt;
  const Operand& there = odd.at != nullptr ? pair->odd : pair->wanted;
  const Operand& other = odd.at != nullptr ? pair->wanted : pair->odd;
  const Put& put = odd.at != nullptr ? odd : wanted;
  if (!put.argument.empty()) {
    auto kept = kept_by_default(put, there, other, finding);
    return kept ? std::move(kept) : left_at_default(put, there, other);
  }
  if (const Frame* parting = parts_from(there, other, finding)) return handed_on_bare(*parting, put, there, other);
  const Frame& place = *put.at;
  return Explanation{cause_at(place, there,
                              mention_first(there) + " comes to the GPU that is current in this line, " + there.device +
                                  ", since no number is given. What it meets is on " + other.device + "."),
                     Fix{place.file, place.line,
                         "Name the device that the work is done on, " + other.device +
                             ", as the tensors beside it say (`device=x.device`); or make it current before: "
                             "`torch.cuda.set_device(...)`."}};
}

}  // namespace devsan::report::why
