// `Module.to()` moves parameters, buffers and child modules. A tensor kept as a plain attribute, or inside a list, dict
// or object that is one, stays where it was made.
#include <string>
#include <string_view>

#include "report/call_text.h"
#include "report/frames.h"
#include "report/statement_text.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"
#include "trace/function_names.h"

namespace devsan::report::why {
namespace {

// A module with an `_apply()` of its own moves such attributes, too: then nobody has moved the module.
std::optional<Explanation> module_never_moved(const Pair& pair, const Evidence& own, const Finding& finding) {
  if (!pair.odd.on_cpu() || !was_never_moved(pair.odd) || pair.odd.lineage.empty()) return std::nullopt;
  const LineageStep& made = pair.odd.lineage.back();
  const bool by_library = !made.within.empty();
  const Frame& call = by_library ? made.at : made_by_call(made);
  if ((!by_library && &call == &made.at) || !is_changeable(call, finding)) return std::nullopt;
  return Explanation{
      cause_at(call, pair.odd,
               mention_first(pair.odd) + " belongs to a `" + own.text +
                   "`, which is made in this line, on the CPU, and moves such attributes by itself, in " +
                   short_place(own.at) + ". Nothing has moved it since."),
      move_module_where_made(call, pair.wanted.device)};
}

// `self.rank[name] = nn.Parameter(...)`, where `self.rank` is a plain dictionary or list: what the line puts there is a
// parameter of no module.
std::optional<Explanation> parameter_in_container(const Pair& pair, const Evidence& held, const Finding& finding) {
  const Evidence* entry = place_of(pair.odd, trace::EvidenceKind::entry_put_at, finding);
  const Evidence* stored = place_of(pair.odd, trace::EvidenceKind::attribute_set_at, finding);
  if (stored == nullptr || pair.odd.lineage.empty()) return std::nullopt;
  const Frame& put = entry != nullptr ? entry->at : pair.odd.lineage.back().at;
  // Without a line that is known to put it there, the one that makes the Parameter does so by its text.
  const bool puts = put.statement().find(".append(") != std::string::npos || stores_entry(put.statement());
  if (entry == nullptr && (!puts || class_of(put) != class_of(stored->at))) return std::nullopt;
  if (put.statement().find("Parameter(") == std::string::npos || !is_constructor(stored->at)) return std::nullopt;
  if (!held.text.starts_with(stored->text + "[")) return std::nullopt;
  const auto made = split_assignment(stored->at.statement());
  const bool list = made && (made->value.starts_with('[') || made->value.starts_with("list("));
  const std::string_view kind = list ? "list" : "dictionary";
  return Explanation{cause_at(stored->at, pair.odd,
                              mention_first(pair.odd) + " comes from a Parameter that " + short_place(put) +
                                  " puts into `" + stored->text + "`, which is a plain " + std::string(kind) +
                                  ": moving the module does not reach what is in there, and no optimizer is given it."),
                     Fix{stored->at.file, stored->at.line,
                         std::string("Make it a `nn.Parameter") + (list ? "List" : "Dict") +
                             "()` here: what that holds belongs to the module."}};
}

// `self.state = torch.zeros(n, device=self.device)` in a method that was called after the module had moved: no move of
// the module has left it behind, the device that the line names is the wrong one.
bool made_for_moved_holder(const Operand& odd, const Finding& finding) {
  const Evidence* moved = place_of(odd, trace::EvidenceKind::holder_moved_at, finding);
  return moved != nullptr && !odd.lineage.empty() && names_device(odd.lineage.back().at) &&
         is_made_after(odd, moved->at);
}

// `self.shift = rule(window)` in a module's forward: each call makes it anew, after all moves. Not where a condition
// keeps it from that.
bool is_set_in_call(const Frame& place, const Operand& odd) {
  const std::string_view function = place.function;
  const std::string_view name = trace::own_name(function);
  return (name == "forward" || name == "__call__") && evidence_of(odd, trace::EvidenceKind::cache_guard_at) == nullptr;
}

// `FlowModel(prior)` below `prior = Normal(torch.zeros(2), torch.ones(2))`: the module keeps what it is given, and the
// line that made that made the tensors for it.
bool is_made_with_object(const Evidence& within, const Operand& odd) {
  const Evidence* held = evidence_of(odd, trace::EvidenceKind::held_by_object);
  if (held == nullptr || odd.lineage.empty()) return false;
  const std::string kept = "self." + std::string(attribute_of_path(within.text));
  const Frame& made = odd.lineage.back().at;
  return keeps_argument(within.at, kept) && is_beginning(made) &&
         find_name(made.statement(), std::string(type_of_path(held->text)) + "(") != std::string_view::npos;
}

// `self.prior = Normal(mean, deviation)`: what an object keeps that is no module is kept by no line of the program but
// the one that gives the module that object.
std::optional<Explanation> kept_within_object(const Pair& pair, const Finding& finding) {
  const Evidence* within = place_of(pair.odd, trace::EvidenceKind::within_module_at, finding);
  if (within == nullptr || !was_never_moved(pair.odd) || same_function(within->at, *finding.where)) return std::nullopt;
  if (is_made_with_object(*within, pair.odd)) return std::nullopt;
  return Explanation{
      cause_at(within->at, pair.odd,
               mention_first(pair.odd) + " is kept within `" + std::string(attribute_of_path(within->text)) +
                   "`, a plain attribute of the module `" + type_of_path(within->text) +
                   "` whose value is no module: moving the module does not reach what is in there, and this stays on " +
                   spoken_device(pair.odd.device) + "."),
      Fix{within->at.file, within->at.line,
          "Make the tensors buffers of the module, and make the object of them where it is used; or let an `_apply()` "
          "of the module make it anew."}};
}

// `overlap(corners(self.priors), boxes)`: a value that other functions computed from a plain attribute, which itself
// goes by another name where they fail, or by none.
std::optional<Explanation> computed_from_attribute(const Pair& pair, const Finding& finding) {
  const Evidence* moved = evidence_of(pair.odd, trace::EvidenceKind::source_holder_moved_at);
  const Evidence* stored = place_of(pair.odd, trace::EvidenceKind::kept_source_at, finding);
  if (moved == nullptr || stored == nullptr || !was_never_moved(pair.odd)) return std::nullopt;
  if (same_function(stored->at, *finding.where) || is_set_in_call(stored->at, pair.odd)) return std::nullopt;
  return Explanation{cause_at(stored->at, pair.odd,
                              mention_first(pair.odd) + " is computed from `" + moved->text +
                                  "`, which is stored here, a plain attribute of a module: " + short_place(moved->at) +
                                  " has moved its parameters and buffers to " + spoken_device(pair.wanted.device) +
                                  ", and this stays on " + spoken_device(pair.odd.device) + "."),
                     register_as_buffer(stored->at, attribute_of_path(moved->text))};
}

}  // namespace

std::optional<Explanation> attribute_not_buffer(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  if (const Evidence* own = evidence_of(pair->odd, trace::EvidenceKind::own_apply_at)) {
    if (auto unmoved = module_never_moved(*pair, *own, finding)) return unmoved;
  }
  // What a block, or a program, makes on its default device, no move has brought there.
  if (evidence_of(pair->wanted, trace::EvidenceKind::default_device_block_at) != nullptr &&
      was_never_moved(pair->odd)) {
    return std::nullopt;
  }
  const Evidence* held = evidence_of(pair->odd, trace::EvidenceKind::held_by_module);
  if (held == nullptr) {
    if (auto within = kept_within_object(*pair, finding)) return within;
    return computed_from_attribute(*pair, finding);
  }
  if (auto put = parameter_in_container(*pair, *held, finding)) return put;
  const Evidence* begun = begun_before_move(pair->odd, finding);
  const Frame* place = begun != nullptr ? &begun->at : attribute_place(pair->odd, *held, finding);
  // One that the failing function itself sets is made anew in each call: it only has to be made elsewhere.
  if (place == nullptr || same_function(*place, *finding.where) || is_set_in_call(*place, pair->odd)) {
    return std::nullopt;
  }
  if (begun == nullptr && made_for_moved_holder(pair->odd, finding)) return std::nullopt;
  const std::optional<SourceAttribute> source = source_attribute(pair->odd, *place, attribute_of_path(held->text));
  if (source) place = &source->step->at;
  RootCause cause = cause_at(*place, pair->odd,
                             mention_first(pair->odd) + (source ? " is made of `self." + source->name + "`," : " is") +
                                 " a plain attribute of the module `" + type_of_path(held->text) +
                                 "`: moving the module moves its parameters and buffers only, and this stays on " +
                                 spoken_device(pair->odd.device) + ".");
  if (moves_parameter(*place)) {
    cause.why += " The Parameter that this line makes is not what it keeps: `.to()` returns a plain tensor.";
    return Explanation{
        std::move(cause),
        Fix{place->file, place->line,
            "Move the value, not the Parameter: `nn.Parameter(value.to(device))`. Then it is a parameter "
            "of the module, moves with it, and an optimizer is given it."}};
  }
  return Explanation{std::move(cause),
                     register_as_buffer(*place, source ? source->name : attribute_of_path(held->text))};
}

}  // namespace devsan::report::why
