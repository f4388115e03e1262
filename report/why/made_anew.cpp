#include "report/why/made_anew.h"

#include <algorithm>
#include <span>
#include <string>

#include "report/frames.h"
#include "report/operands.h"
#include "report/statement_text.h"
#include "report/why/decision.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// Whether the constructor of the same object called the method that made it, itself or by others: `self.reset()`. That
// of another object, as by `head.resize(n)`, has it made already.
bool called_by_constructor(std::span<const Frame> calls) {
  for (const Frame& call : calls) {
    const std::string text = call_at(call);
    const bool own = text.empty() || text.starts_with("self.") || text.starts_with("super(");
    if (!own) return false;
    if (call.function.ends_with("__init__")) return true;
  }
  return false;
}

// A method of the module, no constructor, stores what another function makes for it.
std::optional<Explanation> set_by_method(const Evidence& stored, const Operand& stayed, const Operand& tensor) {
  const LineageStep& made = stayed.lineage.back();
  const auto asked = std::ranges::find_if(made.calls, [&](const Frame& call) { return same_line(call, stored.at); });
  const bool by_method = class_of(stored.at) == type_of_path(stored.text) && !is_constructor(stored.at);
  if (!by_method || asked == made.calls.end() || called_by_constructor({asked + 1, made.calls.end()})) {
    return std::nullopt;
  }
  return Explanation{cause_at(stored.at, stayed,
                              mention_first(stayed) + " is a buffer that this line replaces by what " +
                                  short_place(made.at) + " makes on the CPU. Its module was moved to " + tensor.device +
                                  ", and what is made anew does not follow."),
                     Fix{stored.at.file, stored.at.line,
                         "Move it here, with `.to('" + tensor.device + "')`, or to the device of what it replaces."}};
}

}  // namespace

bool made_anew(const Operand& stayed, const Evidence* bound) {
  const Evidence* stored = evidence_of(stayed, trace::EvidenceKind::attribute_set_at);
  if (stayed.lineage.empty()) return false;
  const LineageStep& made = stayed.lineage.back();
  const bool own = stored != nullptr ? made.at.function.starts_with(type_of_path(stored->text) + ".")
                                     : statement_of(made.at.statement()).starts_with("setattr(self,");
  const bool by_method = own && !made.at.function.ends_with("__init__") && !called_by_constructor(made.calls);
  // `metric = Metric().to(device)`; or it went with what the same line had made before.
  const Evidence* before = evidence_of(stayed, trace::EvidenceKind::made_alike_moved_at);
  const auto moves = [](const Evidence* line) { return line != nullptr && calls_move(line->at.statement()); };
  const bool moved = model_is_elsewhere(stayed) || moves(bound) || moves(before);
  return by_method && moved;
}

Explanation made_by_method(const Operand& stayed, const Operand& tensor, const Finding& finding) {
  const LineageStep& made = stayed.lineage.back();
  const auto decided = decision_of(stayed, trace::EvidenceKind::device_from, finding);
  const Frame& place = decided ? decided->at : made.at;
  const std::string edit = decided ? std::string() : with_argument(call_at(made.at), "device='" + tensor.device + "'");
  return {cause_at(place, stayed,
                   mention_first(stayed) + " is a " + std::string(name_of(stayed.is)) + " that `" + made.at.function +
                       "` made on the CPU" + (decided ? ", in " + short_place(made.at) : std::string()) +
                       ". Its module was moved to " + tensor.device + ", and what is made anew does not follow."),
          Fix{place.file, place.line,
              "Make it where the module is: with the device of what it replaces, or of another weight" +
                  (edit.empty() ? "" : ", as by `" + edit + "`") + "."}};
}

// `objective = LinearObjective(weights)`, whose `weights` a function of the program has made: a model that is elsewhere
// registers it as it came.
std::optional<Explanation> buffer_given(const Operand& stayed, const Operand& tensor, const Finding& finding) {
  if (!model_is_elsewhere(stayed) || stayed.lineage.empty() || stayed.is != trace::NameKind::buffer) {
    return std::nullopt;
  }
  // `self.table = sinusoids(n)`, long after the model was moved: the line that stores it knows the model.
  const Evidence* stored = place_of(stayed, trace::EvidenceKind::attribute_set_at, finding);
  if (stored != nullptr) return set_by_method(*stored, stayed, tensor);
  const LineageStep& made = stayed.lineage.back();
  const bool by_factory = made.how == trace::How::created && same_line(made.at, made.innermost) && made.within.empty();
  if (!by_factory || makes_object(made.at) || !is_changeable(made.at, finding) || names_device(made.at)) {
    return std::nullopt;
  }
  const std::string edit = with_argument(call_at(made.at), "device='" + tensor.device + "'");
  return Explanation{
      cause_at(made.at, stayed,
               mention_first(stayed) + " is a buffer of a model that is on " + tensor.device +
                   ". The model was given it: this line makes it, on the CPU."),
      Fix{made.at.file, made.at.line, "Make it on the same device" + (edit.empty() ? "" : ": `" + edit + "`") + "."}};
}

}  // namespace devsan::report::why
