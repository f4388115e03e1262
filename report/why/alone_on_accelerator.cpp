// A function that works on CPU tensors makes one of its own on an accelerator, whatever the others are on. The operand
// that meets it looks odd, for it is on the CPU; but so is everything else there, or in the program.
#include <algorithm>
#include <string>
#include <string_view>

#include "report/call_text.h"
#include "report/frames.h"
#include "report/why/decision.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"
#include "trace/function_names.h"

namespace devsan::report::why {
namespace {

// In the failing function, or in one that this one is defined in and has its variables from.
bool is_around(const Frame& made, const Frame& failing) {
  if (same_function(made, failing)) return true;
  return made.file == failing.file && made.function != "<module>" &&
         failing.function.starts_with(std::string(trace::function_around(made.function)) + ".<locals>.");
}

// Made in the failing function. What was moved there from elsewhere is data, and wanted where it is.
const LineageStep* made_here(const Operand& operand, const Finding& finding) {
  const LineageStep* arrival = arrival_of(operand);
  if (arrival == nullptr || !is_changeable(arrival->at, finding)) return nullptr;
  const LineageStep& origin = operand.lineage.back();
  const bool fresh = origin.how == trace::How::created && same_line(origin.at, arrival->at);
  return fresh && is_around(arrival->at, *finding.where) ? arrival : nullptr;
}

// In a script, or where one function makes both, either may be meant.
bool is_of_function_alone(const LineageStep& made, const Operand& other) {
  const bool both = !other.lineage.empty() && same_function(other.lineage.back().at, made.at);
  return made.at.function != "<module>" && !both;
}

Explanation among_locals(const LineageStep& made, const Evidence& elsewhere, const Pair& pair) {
  std::string why = "This line puts " + mention(pair.wanted) + " on " + spoken_device(pair.wanted.device) + ". " +
                    elsewhere.text.substr(std::string_view("cpu ").size()) +
                    " tensors that this function works with are on the CPU, and what it meets is one of them.";
  return {cause_at(made.at, pair.wanted, std::move(why)),
          Fix{made.at.file, made.at.line,
              "Make it on the device of what it meets, `" + device_expression(pair.odd) + "`, instead of always on " +
                  spoken_device(pair.wanted.device) + "; or move the others to " + spoken_device(pair.wanted.device) +
                  " before this function is called."}};
}

// `sid = torch.tensor([speaker]).cuda()`, for a model that a line has sent to the CPU by the device that is chosen, as
// all other values: the one that names another device itself.
const LineageStep* hard_coded(const Pair& pair, const Evidence* elsewhere, const Finding& finding) {
  const LineageStep* arrival = arrival_of(pair.wanted);
  const bool chosen = place_of(pair.odd, trace::EvidenceKind::stayed_at, finding) != nullptr;
  if (!chosen || elsewhere == nullptr || arrival == nullptr || !is_changeable(arrival->at, finding)) return nullptr;
  const bool fresh = same_line(pair.wanted.lineage.back().at, arrival->at) && is_running(arrival->at, finding);
  return fresh && !is_beginning(arrival->at) && names_device_itself(arrival->at) ? arrival : nullptr;
}

Explanation in_program(const LineageStep& made, const Pair& pair, const Finding& finding) {
  const auto decided = decision_of(pair.wanted, trace::EvidenceKind::device_from, finding);
  const bool told = decided && is_final(*decided);
  const Frame& place = told ? decided->at : made.at;
  const std::string device = spoken_device(pair.wanted.device);
  std::string why = told ? short_place(made.at) + " makes " + mention(pair.wanted) + " on " + device + ", " +
                               because_of(*decided) + "."
                         : "This line makes " + mention(pair.wanted) + " on " + device + ".";
  why += " Nothing else of the program is there; what it meets is on the CPU.";
  return {cause_at(place, pair.wanted, std::move(why)),
          Fix{place.file, place.line,
              "Make it on the device of what it meets: `device=" + device_expression(pair.odd) + "`."}};
}

// A function that brings several values to the host works there; what another one has made for it on an accelerator, by
// itself, is the one that does not belong.
std::optional<Explanation> among_host_work(const Pair& pair, const Finding& finding) {
  const Evidence* work = evidence_of(pair.odd, trace::EvidenceKind::host_work);
  const LineageStep* brought = newest_move_of(pair.odd);
  const LineageStep* made = arrival_of(pair.wanted);
  if (work == nullptr || brought == nullptr || made == nullptr || !same_function(brought->at, *finding.where)) {
    return std::nullopt;
  }
  if (made->how != trace::How::created || !is_changeable(made->at, finding) || !names_device(made->at)) {
    return std::nullopt;
  }
  return Explanation{
      cause_at(made->at, pair.wanted,
               "This line makes " + mention(pair.wanted) + " on " + spoken_device(pair.wanted.device) + ". `" +
                   finding.where->function + "`, which uses it, brings what it works with to the host, in " +
                   work->text + " lines."),
      Fix{made->at.file, made->at.line,
          "Make it on the CPU here; or bring it to the host where it is used, as the others are."}};
}

// `mean, deviation = statistics(scores)`: a helper that is given values of the CPU, and no device, has one of its own
// choice by default. Its result meets what it was given.
std::optional<Explanation> by_helper_of_own_device(const Pair& pair, const Finding& finding) {
  const auto decided = decision_of(pair.wanted, trace::EvidenceKind::device_from, finding);
  const LineageStep* made = arrival_of(pair.wanted);
  if (!decided || decided->standard != "None" || made == nullptr || !is_running(decided->at, finding)) {
    return std::nullopt;
  }
  const std::string call = call_at(decided->at);
  const std::size_t open = std::min(call.find('('), call.size());
  const bool given = pair.odd.spoken && !pair.odd.name.empty() && find_name(call, pair.odd.name, open) != call.npos;
  if (!given || !was_never_moved(pair.odd) || is_weight(pair.odd)) return std::nullopt;
  const std::string argument = decided->name + "=" + device_expression(pair.odd);
  const std::string edit = with_argument(call, argument);
  return Explanation{cause_at(decided->at, pair.wanted,
                              "This call gives `" + pair.odd.name + "`, which is on the CPU, and leaves `" +
                                  decided->name + "` at its default: " + short_place(made->at) +
                                  " makes the result on " + spoken_device(pair.wanted.device) + "."),
                     Fix{decided->at.file, decided->at.line,
                         "Say where the result is wanted: `" + (edit.empty() ? argument : edit) + "`."}};
}

// `anchors = generator.grid(size)`, whose `device="cuda"` nobody gave, meets what a model on the CPU has computed: no
// line of the program has asked for an accelerator but that default.
std::optional<Explanation> by_default_of_helper(const Pair& pair, const Finding& finding) {
  const auto decided = decision_of(pair.wanted, trace::EvidenceKind::device_from, finding);
  const bool literal = decided && decided->standard.find("cuda") != std::string::npos;
  if (!literal || is_weight(pair.odd) || pair.odd.lineage.empty() || !was_never_moved(pair.odd)) return std::nullopt;
  const LineageStep& weight = pair.odd.lineage.back();
  const bool by_module = weight.innermost.file.find("/torch/nn/") != std::string::npos;
  const bool computed = pair.odd.lineage.front().how == trace::How::derived;
  if (!by_module || !computed || !is_running(decided->at, finding)) return std::nullopt;
  return Explanation{
      cause_at(decided->at, pair.wanted,
               mention_first(pair.wanted) + " is on " + spoken_device(pair.wanted.device) +
                   " because this call leaves `" + decided->name + "` at its default, " + decided->standard +
                   ". The model whose result it meets is on the CPU."),
      Fix{decided->at.file, decided->at.line,
          "Say where it is wanted: give `" + decided->name + "` the device of what this function works with."}};
}

// `box = box.cuda()`, in a method that is given what a model on the CPU has computed: nothing else of the program is on
// an accelerator.
std::optional<Explanation> forced_beside_host_model(const Pair& pair, const Finding& finding) {
  const LineageStep* arrival = arrival_of(pair.wanted);
  const bool alone = evidence_of(pair.wanted, trace::EvidenceKind::alone_on_device) != nullptr;
  if (!alone || arrival == nullptr || !is_changeable(arrival->at, finding) || pair.odd.lineage.empty()) {
    return std::nullopt;
  }
  const bool helper =
      !arrival->calls.empty() && is_running(arrival->calls.front(), finding) && !is_beginning(arrival->calls.front());
  const bool of_function = arrival->at.function != "<module>" && (is_running(arrival->at, finding) || helper);
  const bool computed = pair.odd.lineage.front().how == trace::How::derived && was_never_moved(pair.odd) &&
                        pair.odd.lineage.back().innermost.file.find("/torch/nn/") != std::string::npos;
  if (!of_function || !computed || !names_device_itself(arrival->at) || moves_module(*arrival)) return std::nullopt;
  return Explanation{
      cause_at(arrival->at, pair.wanted,
               "This line puts " + mention(pair.wanted) + " on " + spoken_device(pair.wanted.device) +
                   ". Nothing else of the program is there: it meets what a model on the CPU has computed."),
      Fix{arrival->at.file, arrival->at.line,
          "Put it on the device of what it meets, `" + device_expression(pair.odd) + "`, whatever the machine has."}};
}

// `self.coords = make_coords(size, device="cuda")`, in the constructor of a model that is on the CPU as a whole:
// whoever made the model said nothing of that.
std::optional<Explanation> told_by_constructor(const Pair& pair, const Finding& finding) {
  const auto decided = decision_of(pair.wanted, trace::EvidenceKind::device_from, finding);
  const bool literal = decided && decided->standard.empty() && names_device_itself(decided->at) &&
                       is_device_argument(*decided) && is_constructor(decided->at);
  if (!literal || class_of(decided->at) != class_of(*finding.where) || pair.odd.lineage.empty()) return std::nullopt;
  const LineageStep& weight = pair.odd.lineage.back();
  const bool of_model = weight.innermost.file.find("/torch/nn/") != std::string::npos && was_never_moved(pair.odd) &&
                        class_of(weight.at) == class_of(decided->at);
  if (!of_model) return std::nullopt;
  return Explanation{
      cause_at(decided->at, pair.wanted,
               "This line names " + spoken_device(pair.wanted.device) + " for what " + mention(pair.wanted) +
                   " comes from, wherever the model is to be. Its weights are on the CPU: " + mention(pair.odd) +
                   " is computed from one of them."),
      Fix{decided->at.file, decided->at.line,
          "Make it on the device of a weight; or when it is first needed, on the device of what it meets."}};
}

// `place = "cuda" if torch.cuda.is_available() else "cpu"`, in a helper that is given values of the CPU, too: it asks
// the machine instead of them.
std::optional<Explanation> where_a_gpu_exists(const Pair& pair, const Finding& finding) {
  const LineageStep* made = made_here(pair.wanted, finding);
  if (made == nullptr || is_beginning(made->at)) return std::nullopt;
  const Evidence* asked = place_of(pair.wanted, trace::EvidenceKind::device_from, finding);
  if (asked != nullptr && !same_function(asked->at, made->at)) return std::nullopt;
  // `device=get_device()`
  if (asked == nullptr) asked = place_of(pair.wanted, trace::EvidenceKind::handed_back_at, finding);
  if (asked == nullptr || asked->at.statement().find("is_available()") == std::string::npos) return std::nullopt;
  if (is_weight(pair.odd) || place_of(pair.odd, trace::EvidenceKind::given_at, finding) == nullptr) {
    return std::nullopt;
  }
  return Explanation{
      cause_at(made->at, pair.wanted,
               "This line makes " + mention(pair.wanted) + " on " + spoken_device(pair.wanted.device) +
                   " wherever there is a GPU, as " + short_place(asked->at) + " decides, and does not look at " +
                   mention(pair.odd) + ", which it is given on the CPU."),
      Fix{made->at.file, made->at.line,
          "Make it on the device of what it meets: `device=" + device_expression(pair.odd) + "`."}};
}

}  // namespace

std::optional<Explanation> alone_on_accelerator(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !pair->odd.on_cpu() || !on_accelerator(pair->wanted) || is_weight(pair->wanted)) return std::nullopt;
  if (auto host = among_host_work(*pair, finding)) return host;
  if (auto machine = where_a_gpu_exists(*pair, finding)) return machine;
  if (auto helper = by_helper_of_own_device(*pair, finding)) return helper;
  if (auto helper = by_default_of_helper(*pair, finding)) return helper;
  if (auto told = told_by_constructor(*pair, finding)) return told;
  if (auto forced = forced_beside_host_model(*pair, finding)) return forced;
  // "cpu 7 of 8"
  const Evidence* elsewhere = evidence_of(pair->wanted, trace::EvidenceKind::locals_elsewhere);
  const bool among = elsewhere != nullptr && elsewhere->text.starts_with("cpu ");
  const bool alone = evidence_of(pair->wanted, trace::EvidenceKind::alone_on_device) != nullptr;
  if (among && alone) {
    if (const LineageStep* named = hard_coded(*pair, elsewhere, finding)) {
      return among_locals(*named, *elsewhere, *pair);
    }
  }
  const LineageStep* made = made_here(pair->wanted, finding);
  if (made == nullptr) return std::nullopt;
  if (among && names_device_itself(made->at)) return among_locals(*made, *elsewhere, *pair);
  if (!alone || is_weight(pair->odd) || !is_of_function_alone(*made, pair->odd)) return std::nullopt;
  return in_program(*made, *pair, finding);
}

}  // namespace devsan::report::why
