// An object that is no module keeps a tensor that it was given. Nothing moves it when the model moves: whoever keeps a
// tensor for later has to decide where.
#include "report/frames.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// `self.unknowns[name] = nn.Parameter(torch.rand(1))`, in a class that is no module: a parameter that belongs to none.
std::optional<Explanation> parameter_of_object(const Pair& pair, const Evidence& held, const Finding& finding) {
  const Operand& weight = pair.odd;
  const bool bare = weight.is == trace::NameKind::parameter && weight.on_cpu() && !was_moved(weight) &&
                    evidence_of(weight, trace::EvidenceKind::root_name) == nullptr &&
                    evidence_of(weight, trace::EvidenceKind::module_bound_at) == nullptr;
  const Evidence* stored = place_of(weight, trace::EvidenceKind::attribute_set_at, finding);
  if (!bare || stored == nullptr || !held.text.starts_with(stored->text)) return std::nullopt;
  const Evidence* entry = place_of(weight, trace::EvidenceKind::entry_put_at, finding);
  const Evidence& place = entry != nullptr && class_of(entry->at) == class_of(stored->at) ? *entry : *stored;
  return Explanation{
      cause_at(place.at, weight,
               mention_first(weight) + " is a parameter that an object of `" + type_of_path(held.text) +
                   "` keeps from here on, on the CPU. That is no module: neither it, nor a module that has it as an "
                   "attribute, moves the parameter."),
      Fix{place.at.file, place.at.line,
          "Keep it in a module, in an `nn.ParameterDict` or as an attribute, that is moved with the model; or make it "
          "on " +
              spoken_device(pair.wanted.device) + " here."}};
}

// `self.weight, self.scale = weight, scale`, of one that keeps both as they come: who gives them has to give them
// alike. What its caller has made, that could have made elsewhere.
bool keeps_both_as_given(const Pair& pair, const Evidence& stored) {
  const Evidence* other = evidence_of(pair.wanted, trace::EvidenceKind::attribute_set_at);
  const auto as_given = [](const Evidence& one) {
    return keeps_argument(one.at, "self." + std::string(attribute_of_path(one.text)));
  };
  const bool both = other != nullptr && same_function(other->at, stored.at) && as_given(stored) && as_given(*other);
  const LineageStep* origin = arrival_of(pair.odd);
  return both && origin != nullptr && origin->how == trace::How::created && !same_function(origin->at, stored.at) &&
         !names_device(origin->at);
}

}  // namespace

std::optional<Explanation> kept_by_object(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  const Evidence* held = evidence_of(pair->odd, trace::EvidenceKind::held_by_object);
  if (held != nullptr) {
    if (auto parameter = parameter_of_object(*pair, *held, finding)) return parameter;
  }
  const Evidence* stored = place_of(pair->odd, trace::EvidenceKind::attribute_set_at, finding);
  if (held == nullptr || stored == nullptr || same_function(stored->at, *finding.where)) return std::nullopt;
  // It was made in the function that put it together with the others, which had to make it where these are.
  const Evidence* put = place_of(pair->odd, trace::EvidenceKind::put_beside_at, finding);
  if (put != nullptr && is_made_in(put->at, pair->odd)) return std::nullopt;
  // What an attribute merely leads to, by way of another object, was given to that elsewhere.
  if (!held->text.starts_with(stored->text)) return std::nullopt;
  if (keeps_both_as_given(*pair, *stored)) return std::nullopt;
  const LineageStep* origin = arrival_of(pair->odd);
  if (origin != nullptr && same_line(origin->at, stored->at)) return std::nullopt;
  // `if levels is None: levels = torch.linspace(0, 1, 9)`: the constructor itself has made it.
  const bool own = origin != nullptr && origin->how == trace::How::created && same_function(origin->at, stored->at);
  if (own && is_constructor(stored->at)) return std::nullopt;
  // Who binds what the same function has made could have made it elsewhere.
  const bool partial = held->text.starts_with("functools.partial.");
  if (partial && origin != nullptr && same_function(origin->at, stored->at)) return std::nullopt;
  std::string why = "A `" + type_of_path(held->text) + "` keeps `" + std::string(attribute_of_path(held->text)) +
                    "` from here on, on " + spoken_device(pair->odd.device);
  if (origin != nullptr && is_changeable(origin->at, finding)) {
    why += ", where " + short_place(origin->at) + " put it";
  }
  why += ". It is no module, so nothing moves it with the model.";
  const std::string edit = assigned_after_move(stored->at, "'" + pair->wanted.device + "'");
  return Explanation{cause_at(stored->at, pair->odd, std::move(why)),
                     Fix{stored->at.file, stored->at.line,
                         "Keep it on the device of what it meets" + (edit.empty() ? "" : ": `" + edit + "`") +
                             ", or move it " + where_used(pair->odd, pair->wanted, finding) + "."}};
}

}  // namespace devsan::report::why
