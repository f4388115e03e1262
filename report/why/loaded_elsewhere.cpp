// `torch.load` puts each tensor on the device it was saved from, or where `map_location` says.
#include <algorithm>

#include "report/frames.h"
#include "report/statement_text.h"
#include "report/why/decision.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// `group["norms"] = saved["norms"].clone()`, in a method of the optimizer whose step fails: an entry of what the object
// keeps, which no attribute of its own leads to.
const Frame* taken_over_by_user(const Operand& odd, const LineageStep& load, const Finding& finding) {
  const LineageStep* before = newest_before(odd, finding);
  if (before == nullptr) return nullptr;
  const Frame& newest = before->at;
  const bool method = newest.function.find('.') != std::string::npos && !is_constructor(newest);
  const bool by_user = newest.file == finding.where->file && class_of(newest) == class_of(*finding.where);
  const bool takes_over = method && by_user && !same_function(newest, *finding.where) &&
                          !same_function(newest, load.at) && is_changeable(newest, finding) &&
                          stores_entry(newest.statement());
  return takes_over ? &newest : nullptr;
}

// `torch.load(path, map_location="cpu")` is how to read what others have saved: each who takes a part of it copies that
// to where it belongs. One that keeps its part as it came, in another function or as a weight, is the mistake.
const Frame* kept_as_loaded(const Operand& odd, const LineageStep& load, const Finding& finding) {
  const bool to_host = !is_changeable(load.at, finding) || load.at.statement().find("\"cpu\"") != std::string::npos ||
                       load.at.statement().find("'cpu'") != std::string::npos;
  if (!odd.on_cpu() || !to_host) return nullptr;
  if (is_weight(odd)) {
    const Evidence* put = place_of(odd, trace::EvidenceKind::weight_put_at, finding);
    return put != nullptr && !put->at.function.ends_with("__init__") ? &put->at : nullptr;
  }
  // `self.factors[p] = list(factors)`, in the method that takes the state over.
  const Evidence* entry = place_of(odd, trace::EvidenceKind::entry_put_at, finding);
  if (entry != nullptr && !same_line(entry->at, *finding.where) && !same_function(entry->at, load.at) &&
      !is_constructor(entry->at) && stores_entry(entry->at.statement())) {
    return &entry->at;
  }
  if (const Frame* taken = taken_over_by_user(odd, load, finding)) return taken;
  const Evidence* list = place_of(odd, trace::EvidenceKind::list_stored_at, finding);
  const bool held = list != nullptr || evidence_of(odd, trace::EvidenceKind::held_by_object) != nullptr ||
                    evidence_of(odd, trace::EvidenceKind::held_by_module) != nullptr;
  if (!held) return nullptr;
  const auto is_keeper = [&](const Frame& place) {
    const auto assigned = split_assignment(place.statement());
    return is_changeable(place, finding) && !same_function(place, load.at) && !same_line(place, *finding.where) &&
           !is_constructor(place) && assigned && assigned->target.starts_with("self.");
  };
  if (const LineageStep& newest = odd.lineage.front(); is_keeper(newest.at)) return &newest.at;
  const Evidence* stored = list != nullptr ? list : place_of(odd, trace::EvidenceKind::attribute_set_at, finding);
  return stored != nullptr && is_keeper(stored->at) ? &stored->at : nullptr;
}

// `super().load_state_dict(state)` in an optimizer of the program's own: that moves the state of parameters which are
// tensors, and copies all else as it was loaded.
std::optional<Explanation> copied_by_override(const Operand& odd, const LineageStep& load, const Pair& pair,
                                              const Finding& finding) {
  const auto is_copy = [&](const LineageStep& step) {
    return step.op == "at::storage_copy" && is_changeable(step.at, finding) &&
           step.at.statement().find("super().load_state_dict(") != std::string::npos;
  };
  const auto copy = std::ranges::find_if(odd.lineage, is_copy);
  if (!odd.on_cpu() || copy == odd.lineage.end()) return std::nullopt;
  return Explanation{
      cause_at(
          copy->at, odd,
          "This line takes over " + mention(odd) + " as it was loaded in " + short_place(load.at) +
              ", on the CPU: it brings to the parameters' device what is a tensor of their state, and nothing that "
              "an object or a group keeps."),
      Fix{copy->at.file, copy->at.line,
          "Bring the rest over behind this line: `.to('" + pair.wanted.device + "')` for each that is kept so."}};
}

Explanation kept(const Frame& place, const LineageStep& load, const Pair& pair) {
  return {
      cause_at(place, pair.odd,
               "This line keeps " + mention(pair.odd) + " as it was loaded, on the CPU, as `map_location` says in " +
                   short_place(load.at) + ". What it meets is on " + pair.wanted.device + "."),
      Fix{place.file, place.line,
          "Move what is kept here to where it is used, `.to('" + pair.wanted.device +
              "')`, or copy it into what was there with `copy_()`."}};
}

// `load_file(path)`, `safe_open(path, "pt")`
Explanation read_by_safetensors(const LineageStep& load, const Pair& pair) {
  const std::string call = call_at(load.at);
  const bool takes_device = call.find("load_file(") != std::string::npos;
  const std::string edit = takes_device ? with_argument(call, "device='" + pair.wanted.device + "'") : std::string();
  const std::string what = edit.empty() ? "Tell what opens the file the device, `device='" + pair.wanted.device + "'`"
                                        : "Load it to where it is needed: `" + edit + "`";
  return {
      cause_at(load.at, pair.odd,
               mention_first(pair.odd) + " is read from a file here, to " + spoken_device(pair.odd.device) +
                   ", since no other device is told. What it meets is on " + spoken_device(pair.wanted.device) + "."),
      Fix{load.at.file, load.at.line,
          what + "; or move what you take from it with `.to('" + pair.wanted.device + "')`."}};
}

// `torch.load(path, map_location=where)`: a variable or an argument says so.
Explanation mapped_by(const Decision& told, const LineageStep& load, const Pair& pair, const Finding& finding) {
  return {cause_at(told.at, pair.odd,
                   short_place(load.at) + " loads " + mention(pair.odd) + " to " + spoken_device(pair.odd.device) +
                       ", " + because_of(told) + ". What it meets is on " + spoken_device(pair.wanted.device) + "."),
          Fix{told.at.file, told.at.line,
              change_of(told, pair, finding) + "; or move what is taken from it with `.to('" + pair.wanted.device +
                  "')`."}};
}

// What was loaded to the accelerator that it was saved from, whoever loads it.
bool is_where_it_was_saved(const Operand& operand) {
  const LineageStep* arrival = arrival_of(operand);
  return arrival != nullptr && is_load(*arrival) && on_accelerator(operand) &&
         arrival->at.statement().find("map_location") == std::string::npos;
}

// `torch.rand(4, device="cuda")`: on whichever is current, which may as well be the wrong one.
bool says_current(const Operand& operand) {
  const LineageStep* arrival = arrival_of(operand);
  return means_current_device(arrival != nullptr ? arrival->at.statement() : operand.name);
}

// `outputs.detach().cpu()`: the program has sent it to the host itself, where it works with such.
bool is_sent_to_host(const Operand& operand) {
  const LineageStep* move = newest_move_of(operand);
  return operand.on_cpu() && move != nullptr && !is_load(*move) && names_device_itself(move->at);
}

// `model.state_dict()[name]`, of a model that nothing has moved: a script that computes with such entries works on the
// host, whatever device a file says.
bool is_entry_of_host_model(const Operand& operand) {
  return operand.on_cpu() && operand.name.ends_with("']") && was_never_moved(operand) &&
         evidence_of(operand, trace::EvidenceKind::module_bound_at) != nullptr;
}

// A number from an accelerator is odd beside a CPU tensor that takes it in; not where that is on the CPU because it was
// read so. And of two devices what a program has put there itself is on the right one, rather than what a file says.
std::optional<Pair> loaded_among(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return pair;
  if (is_sent_to_host(pair->odd) && is_where_it_was_saved(pair->wanted)) return Pair{pair->wanted, pair->odd};
  if (is_entry_of_host_model(pair->odd) && is_where_it_was_saved(pair->wanted)) return Pair{pair->wanted, pair->odd};
  if (!on_accelerator(pair->odd)) return pair;
  const bool read_so = pair->odd.is_scalar() && pair->wanted.on_cpu();
  const bool saved_so =
      is_where_it_was_saved(pair->wanted) && !is_where_it_was_saved(pair->odd) && !says_current(pair->odd);
  return read_so || saved_so ? Pair{pair->wanted, pair->odd} : *pair;
}

}  // namespace

std::optional<Explanation> loaded_elsewhere(const Finding& finding) {
  const auto pair = loaded_among(finding);
  if (!pair) return std::nullopt;
  const LineageStep* arrival = arrival_of(pair->odd);
  if (arrival == nullptr || !is_load(*arrival)) return std::nullopt;
  if (!is_changeable(arrival->at, finding)) {
    // A library has read it, and the program keeps its part of that.
    const Frame* place = kept_as_loaded(pair->odd, *arrival, finding);
    return place != nullptr ? std::optional(kept(*place, *arrival, *pair)) : std::nullopt;
  }
  if (const auto told = decision_of(pair->odd, trace::EvidenceKind::device_from, finding); told && is_final(*told)) {
    return mapped_by(*told, *arrival, *pair, finding);
  }
  if (auto copied = copied_by_override(pair->odd, *arrival, *pair, finding)) return copied;
  if (const Frame* place = kept_as_loaded(pair->odd, *arrival, finding)) return kept(*place, *arrival, *pair);
  if (is_load_of_safetensors(*arrival)) return read_by_safetensors(*arrival, *pair);
  const bool mapped = arrival->at.statement().find("map_location") != std::string::npos;
  RootCause cause =
      cause_at(arrival->at, pair->odd,
               mention_first(pair->odd) + " is loaded here, to " + spoken_device(pair->odd.device) +
                   (mapped ? ", as `map_location` says." : ", the device it was saved from.") +
                   (pair->wanted.on_cpu() && newest_move_of(pair->wanted) != nullptr
                        ? " " + short_place(newest_move_of(pair->wanted)->at) + " brings what it meets to the CPU."
                        : ""));
  const std::string edit =
      mapped ? "" : with_argument(call_at(arrival->at), "map_location='" + pair->wanted.device + "'");
  std::string text = edit.empty() ? "Load it to " + spoken_device(pair->wanted.device) + " with `map_location`"
                                  : "Load it to where it is needed: `" + edit + "`";
  text += ", or move what you take from it with `.to('" + pair->wanted.device + "')`.";
  return Explanation{std::move(cause), Fix{arrival->at.file, arrival->at.line, std::move(text)}};
}

}  // namespace devsan::report::why
