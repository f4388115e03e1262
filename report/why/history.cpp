#include "report/why/history.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "report/call_text.h"
#include "report/operands.h"
#include "report/statement_text.h"
#include "report/why/edit.h"
#include "report/written_text.h"
#include "trace/function_names.h"
#include "trace/odd_operand.h"
#include "trace/words.h"

namespace devsan::report::why {

std::optional<Pair> pair_of(const Finding& finding) {
  const Operand* odd = first_odd(finding.operands);
  if (odd == nullptr || !finding.where) return std::nullopt;
  const Operand* wanted = counterpart_of(*odd, finding.operands);
  if (wanted == nullptr) return std::nullopt;
  return Pair{*odd, *wanted};
}

bool is_changeable(const Frame& place, const Finding& finding) {
  if (place.file.empty() || place.line == 0 || place.torch) return false;
  if (place.file.starts_with('<') && (place.source.empty() || !is_written_text(place.file))) return false;
  return !place.library || finding.within_libraries;
}

const LineageStep* newest_move_of(const Operand& operand) {
  for (const LineageStep& step : operand.lineage) {
    if (step.device != operand.device) return nullptr;  // older than the arrival
    if (step.how == trace::How::moved) return &step;
  }
  return nullptr;
}

const LineageStep* arrival_of(const Operand& operand) {
  if (const LineageStep* move = newest_move_of(operand)) return move;
  if (operand.lineage.empty() || operand.lineage.back().device != operand.device) return nullptr;
  return &operand.lineage.back();
}

const LineageStep* move_before(const Operand& operand, const LineageStep& move) {
  const auto first = operand.lineage.begin() + (&move - operand.lineage.data()) + 1;
  const auto found =
      std::find_if(first, operand.lineage.end(), [](const LineageStep& step) { return step.how == trace::How::moved; });
  return found != operand.lineage.end() ? &*found : nullptr;
}

bool was_never_moved(const Operand& operand) {
  return std::ranges::none_of(operand.lineage, [](const LineageStep& step) { return step.how == trace::How::moved; });
}

bool was_on(const Operand& operand, std::string_view device) {
  return std::ranges::any_of(operand.lineage, [device](const LineageStep& step) { return step.device == device; });
}

const LineageStep* stored_as_entry(const Operand& operand, const Finding& finding) {
  for (const LineageStep& step : operand.lineage) {
    if (made_in_failing_call(step, finding)) continue;
    // Writing elements of a tensor looks the same, but is an operator.
    const std::string_view name = trace::operator_base_name(step.op);
    const bool in_place = name.ends_with('_') && !name.ends_with("__");
    if (!in_place && is_changeable(step.at, finding) && stores_entry(step.at.statement())) return &step;
  }
  return nullptr;
}

bool is_cached_at(const Operand& operand, const Frame& place) {
  return std::ranges::any_of(operand.evidence, [&](const Evidence& evidence) {
    return evidence.kind == trace::EvidenceKind::cache_key_at && same_line(evidence.at, place);
  });
}

const Evidence* evidence_of(const Operand& operand, trace::EvidenceKind kind) {
  const auto found = std::ranges::find(operand.evidence, kind, &Evidence::kind);
  return found == operand.evidence.end() ? nullptr : &*found;
}

const Evidence* place_of(const Operand& operand, trace::EvidenceKind kind, const Finding& finding) {
  for (const Evidence& evidence : operand.evidence) {
    if (evidence.kind == kind && is_changeable(evidence.at, finding)) return &evidence;
  }
  return nullptr;
}

const Evidence* store_of(const Operand& operand, const Evidence& held, const Finding& finding) {
  for (const auto kind : {trace::EvidenceKind::attribute_set_at, trace::EvidenceKind::declared_at}) {
    const auto stores = [&](const Evidence& evidence) {
      return evidence.kind == kind && evidence.text == held.text && is_changeable(evidence.at, finding);
    };
    const auto found = std::ranges::find_if(operand.evidence, stores);
    if (found != operand.evidence.end()) return &*found;
  }
  return nullptr;
}

bool begins_with_entry(std::string_view value) {
  const std::size_t open = value.find('[');
  return open != 0 && open != value.npos &&
         std::ranges::all_of(value.substr(0, open), [](char c) { return trace::is_word(c) || c == '.'; });
}

const Evidence* perhaps_taken(const Operand& operand, const Finding& finding) {
  const Evidence* found = nullptr;
  for (const Evidence& one : operand.evidence) {
    if (one.kind != trace::EvidenceKind::perhaps_bound_at || !is_changeable(one.at, finding)) continue;
    const auto assigned = split_assignment(one.at.statement());
    if (!assigned || !begins_with_entry(assigned->value) || !only_takes_apart(one.at.statement())) continue;
    if (found != nullptr) return nullptr;
    found = &one;
  }
  return found;
}

bool is_made_in(const Frame& place, const Operand& operand) {
  return !operand.lineage.empty() && operand.lineage.back().how == trace::How::created &&
         same_function(operand.lineage.back().at, place);
}

bool made_in_failing_call(const LineageStep& step, const Finding& finding) {
  if (!finding.where || step.at.file != finding.where->file) return false;
  return step.at.line >= finding.where->line && step.at.line <= std::max(finding.where->end_line, finding.where->line);
}

namespace {

// A comprehension of a script itself goes by no name of a function around it.
std::string_view function_of(const Frame& place) {
  const std::string_view function = trace::function_around(place.function);
  return trace::is_comprehension(function) ? "<module>" : function;
}

}  // namespace

bool same_function(const Frame& one, const Frame& other) {
  return one.file == other.file && function_of(one) == function_of(other);
}

bool is_running(const Frame& place, const Finding& finding) {
  return std::ranges::any_of(finding.stack, [&](const Frame& frame) { return same_function(frame, place); });
}

namespace {

std::string text_at(const Frame& place) {
  std::string call = call_at(place);
  return call.empty() ? place.statement() : call;
}

}  // namespace

bool names_device(const Frame& place) {
  const std::string text = text_at(place);
  // `**options` may hold one.
  constexpr std::array<std::string_view, 5> kSay = {"device", "cuda", "cpu", "(**", ", **"};
  return std::ranges::any_of(kSay, [&](std::string_view one) { return text.find(one) != text.npos; });
}

bool names_device_itself(const Frame& place) {
  constexpr std::array<std::string_view, 7> kLiterals = {"\"cpu",  "'cpu",  "\"cuda",       "'cuda",
                                                         ".cuda(", ".cpu(", "torch.device("};
  const std::string text = text_at(place);
  return std::ranges::any_of(kLiterals, [&](std::string_view one) { return text.find(one) != text.npos; });
}

bool means_current_device(std::string_view text) {
  const auto stands_bare = [text](std::string_view literal) {
    for (std::size_t at = text.find(literal); at != text.npos; at = text.find(literal, at + 1)) {
      const bool numbered =
          text.substr(0, at).ends_with("device(") && text.substr(at + literal.size()).starts_with(',');
      if (!numbered) return true;
    }
    return false;
  };
  return stands_bare(".cuda()") || stands_bare("\"cuda\"") || stands_bare("'cuda'");
}

bool calls_move(std::string_view text) {
  return trace::calls_method(text, trace::kMoves);
}

const LineageStep* made_of_no_device(const Operand& operand) {
  const LineageStep* made = arrival_of(operand);
  const bool chosen =
      made != nullptr && made->how == trace::How::created && !names_device(made->at) && !made_like_another(made->at);
  return chosen ? made : nullptr;
}

bool made_like_another(const Frame& place) {
  const std::string text = text_at(place);
  return text.find("_like(") != text.npos || text.find(".new_") != text.npos;
}

bool drops_result(const Frame& place) {
  const std::string call = call_at(place);
  return !call.empty() && statement_of(place.statement()) == call && !split_assignment(place.statement());
}

bool is_device_of_value(const Frame& place) {
  constexpr std::string_view kDevice = ".device";
  constexpr std::array<std::string_view, 8> kSettings = {"self", "torch", "arg",   "cfg",
                                                         "conf", "opt",   "param", "setting"};
  const std::string_view line = statement_of(place.statement());
  for (std::size_t at = line.find(kDevice); at != line.npos; at = line.find(kDevice, at + 1)) {
    const std::size_t behind = at + kDevice.size();
    if (at == 0 || (behind < line.size() && trace::is_word(line[behind]))) continue;
    const std::size_t begin = line.find_last_of(" (=,.", at - 1) + 1;
    const std::string_view name = line.substr(begin, at - begin);
    const auto is_part = [name](std::string_view one) { return name.find(one) != name.npos; };
    if (!name.empty() && !std::ranges::any_of(kSettings, is_part)) return true;
  }
  return false;
}

bool makes_object(const Frame& place) {
  const std::string_view function = trace::function_around(place.function);
  return function.ends_with("__init__") || function.ends_with("__post_init__");
}

bool is_constructor(const Frame& place) {
  return makes_object(place) || place.function == "<module>";
}

bool is_loop(const Frame& place) {
  return statement_of(place.statement()).starts_with("for ");
}

std::string_view own_function(const Frame& place) {
  return trace::own_name(trace::function_around(place.function));
}

const Frame& made_by_call(const LineageStep& made) {
  if (!makes_object(made.at)) return made.at;
  const auto call = std::ranges::find_if_not(made.calls, makes_object);
  return call != made.calls.end() ? *call : made.at;
}

bool keeps_argument(const Frame& place, std::string_view attribute) {
  const std::string_view value = value_given(place.statement(), attribute);
  return makes_object(place) && !value.empty() && std::ranges::all_of(value, trace::is_word);
}

std::string_view class_of(const Frame& place) {
  const std::string_view function = place.function;
  return function.substr(0, std::min(function.rfind('.'), function.size()));
}

std::optional<SourceAttribute> source_attribute(const Operand& operand, const Frame& stored,
                                                std::string_view attribute) {
  const auto store = split_assignment(stored.statement());
  if (!store || operand.lineage.size() < 2) return std::nullopt;
  const LineageStep& made = operand.lineage.back();
  const auto kept = split_assignment(made.at.statement());
  if (!kept || !kept->target.starts_with("self.") || made.device != operand.device) return std::nullopt;
  if (made.at.file != stored.file || class_of(made.at) != class_of(stored)) return std::nullopt;
  const std::string_view name = kept->target.substr(5);
  if (name == attribute || name.find_first_of(".[") != name.npos || kept->value.find("Parameter(") != name.npos) {
    return std::nullopt;
  }
  if (!store->value.starts_with(std::string(kept->target) + ".")) return std::nullopt;
  return SourceAttribute{&made, std::string(name)};
}

bool is_beginning(const Frame& place) {
  return place.function == "<module>" || place.function == "main";
}

bool moves_module(const LineageStep& move) {
  return move.innermost.file.ends_with("/torch/nn/modules/module.py");
}

bool joins_entries(const LineageStep& step) {
  constexpr std::array<std::string_view, 6> kJoins = {"stack",  "cat",          "hstack",
                                                      "vstack", "column_stack", "pad_sequence"};
  return step.how == trace::How::derived &&
         std::ranges::find(kJoins, trace::operator_base_name(step.op)) != kJoins.end();
}

const LineageStep* offloaded_in_place(const Operand& operand, const Finding& finding) {
  const LineageStep* move = newest_move_of(operand);
  if (move == nullptr || !operand.on_cpu() || !is_changeable(move->at, finding)) return nullptr;
  const std::string& text = move->at.statement();
  const std::size_t assigned = text.find(".data");
  return assigned != text.npos && assigned < text.find('=') && text.find(".data.") != text.npos ? move : nullptr;
}

const LineageStep* newest_before(const Operand& operand, const Finding& finding) {
  const auto before = [&](const LineageStep& step) { return !made_in_failing_call(step, finding); };
  const auto found = std::ranges::find_if(operand.lineage, before);
  return found != operand.lineage.end() ? &*found : nullptr;
}

const LineageStep* list_made_above(const Operand& operand, const Finding& finding) {
  if (operand.lineage.empty()) return nullptr;
  const LineageStep& newest = operand.lineage.front();
  const bool here = newest.how == trace::How::derived && same_function(newest.at, *finding.where) &&
                    !made_in_failing_call(newest, finding) && is_changeable(newest.at, finding);
  const auto assigned = split_assignment(newest.at.statement());
  const bool list =
      assigned && assigned->value.starts_with('[') && assigned->value.find(" for ") != std::string_view::npos;
  return here && list ? &newest : nullptr;
}

const Evidence* called_before_move(const Operand& operand, const Finding& finding) {
  const Evidence* call = place_of(operand, trace::EvidenceKind::called_before_move_at, finding);
  return call != nullptr && call->at.function != "<module>" ? call : nullptr;
}

bool is_load(const LineageStep& step) {
  return step.innermost.file.ends_with("/torch/serialization.py") || is_load_of_safetensors(step) ||
         call_at(step.at).find("torch.load(") != std::string::npos;
}

bool is_load_of_safetensors(const LineageStep& step) {
  // It gives torch.asarray() a storage, in its own code or, without a Python frame, in `file.get_tensor(key)`.
  const bool by_storage = step.how == trace::How::created && step.op == "aten::set_.source_Storage";
  const auto is_its_own = [](const Frame& frame) { return frame.file.find("/safetensors/") != std::string::npos; };
  return by_storage && (is_its_own(step.innermost) || std::ranges::any_of(step.within, is_its_own) ||
                        call_at(step.at).find(".get_tensor(") != std::string::npos);
}

bool is_made_after(const Operand& made, const Frame& place) {
  if (made.lineage.empty()) return false;
  const LineageStep& step = made.lineage.back();
  const auto behind = [&](const Frame& call) { return same_function(call, place) && call.line > place.line; };
  return behind(step.at) || std::ranges::any_of(step.calls, behind);
}

const LineageStep* bound_in_function(const Operand& operand, const Frame& place) {
  for (const LineageStep& step : operand.lineage) {
    if (step.device != operand.device) return nullptr;
    if (same_function(step.at, place) && split_assignment(step.at.statement())) return &step;
  }
  return nullptr;
}

const LineageStep& asking_step(const Operand& operand) {
  const auto asks = [&](const LineageStep& step) { return step.device == operand.device && names_device(step.at); };
  const auto found = std::ranges::find_if(operand.lineage, asks);
  return found != operand.lineage.end() ? *found : operand.lineage.back();
}

bool begins_value(const LineageStep& step) {
  constexpr std::array<std::string_view, 12> kFactories = {"arange",   "empty",    "eye",           "full",
                                                           "linspace", "ones",     "rand",          "randn",
                                                           "randint",  "randperm", "scalar_tensor", "zeros"};
  return std::ranges::find(kFactories, trace::operator_base_name(step.op)) != kFactories.end();
}

bool is_given_away(const Frame& copy) {
  const std::string call = call_at(copy);
  const std::string_view statement = statement_of(copy.statement());
  const std::size_t at = call.empty() ? statement.npos : statement.find(call);
  return at != statement.npos && at > 0 && statement[at - 1] == '(';
}

bool on_accelerator(const Operand& operand) {
  return trace::classify_device(operand.device) == trace::DeviceClass::accelerator;
}

bool model_is_elsewhere(const Operand& weight) {
  return evidence_of(weight, trace::EvidenceKind::weights_elsewhere) != nullptr ||
         evidence_of(weight, trace::EvidenceKind::model_spread) != nullptr;
}

const Evidence* holder_moved_to(const Operand& attribute, std::string_view device) {
  const Evidence* moved = evidence_of(attribute, trace::EvidenceKind::holder_moved_at);
  return moved != nullptr && moved->text == device ? moved : nullptr;
}

const Evidence* begun_before_move(const Operand& attribute, const Finding& finding) {
  const Evidence* begun = place_of(attribute, trace::EvidenceKind::attribute_begun_at, finding);
  const bool moved = evidence_of(attribute, trace::EvidenceKind::holder_moved_at) != nullptr &&
                     evidence_of(attribute, trace::EvidenceKind::held_by_module) != nullptr;
  return begun != nullptr && moved && !same_function(begun->at, *finding.where) ? begun : nullptr;
}

bool is_weight(const Operand& operand) {
  return operand.is == trace::NameKind::parameter || operand.is == trace::NameKind::buffer;
}

const Frame* attribute_place(const Operand& operand, const Evidence& held, const Finding& finding) {
  const Evidence* stored = place_of(operand, trace::EvidenceKind::attribute_set_at, finding);
  if (stored == nullptr || !held.text.starts_with(stored->text)) {
    const Evidence* declared = store_of(operand, held, finding);
    if (declared != nullptr) stored = declared;
  }
  if (const LineageStep* entry = stored != nullptr ? stored_as_entry(operand, finding) : nullptr) {
    return same_function(entry->at, stored->at) ? &entry->at : nullptr;
  }
  if (stored != nullptr) return &stored->at;
  const LineageStep* arrival = arrival_of(operand);
  return arrival != nullptr && is_changeable(arrival->at, finding) ? &arrival->at : nullptr;
}

bool moves_parameter(const Frame& place) {
  const auto stored = split_assignment(place.statement());
  const auto call = stored ? split_call(stored->value) : std::nullopt;
  return call && call->receiver.ends_with(')') && call->receiver.find("Parameter(") != call->receiver.npos &&
         calls_move(stored->value.substr(call->receiver.size()));
}

bool registers_weight(const Frame& place) {
  const std::string_view statement = statement_of(place.statement());
  return statement.starts_with("self.register_buffer(") || statement.find("Parameter(") != statement.npos;
}

bool asks_weight(const Frame& place) {
  const std::string call = call_at(place);
  return call.find(".weight.device") != call.npos || call.find("parameters()).device") != call.npos;
}

bool is_written_to(const Operand& operand, const Finding& finding) {
  return operand.arg == "self" && trace::works_in_place(finding.op);
}

bool is_in_own_forward(const Frame& place, const Finding& finding) {
  return finding.where->function.ends_with(".backward") &&
         place.function == std::string(class_of(*finding.where)) + ".forward";
}

bool belongs_to_part(const Operand& weight) {
  const Evidence* path = evidence_of(weight, trace::EvidenceKind::root_name);
  return path != nullptr && path->text.find('.') != std::string::npos;
}

}  // namespace devsan::report::why
