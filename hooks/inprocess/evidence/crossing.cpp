// Where a value that belongs on one accelerator is handed over to what works on another: the line in between, which
// belongs to neither side, and should have moved it.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/call_frames.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/module_weights.h"
#include "hooks/inprocess/evidence/waiting_calls.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/large_page.h"
#include "hooks/inprocess/provenance/lineage_nodes.h"
#include "hooks/inprocess/snapshot/argument_tensors.h"
#include "hooks/inprocess/snapshot/named_objects.h"
#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxCalls = 12;
constexpr std::size_t kMaxHistory = 12;

// What an operand is and was computed from, as far as that lies on its own device.
std::vector<trace::LineageId> history_of(const trace::OperandRecord& operand) {
  std::vector<trace::LineageId> history;
  trace::LineageId id = operand.lineage;
  while (id != trace::LineageId::none && history.size() < kMaxHistory) {
    const trace::LineageNode node = runtime.recorder->lineage(id);
    if (node.device != operand.device) break;
    history.push_back(id);
    if (node.how != trace::How::derived) break;
    id = node.parent;
  }
  return history;
}

// The argument of a running function that is the operand, or that it was computed from.
struct Carrier {
  const void* name = nullptr;  // null where none carries it, or several do
  // In a list or dictionary others come with it, and what takes them all is where they meet.
  bool by_itself = false;
};

Carrier carrier_of(const Inquiry& inquiry, std::size_t operand, const void* frame) {
  const trace::OperandRecord& record = inquiry.operands[operand];
  const std::vector<trace::LineageId> history = history_of(record);
  const auto carries = [&](const ArgumentTensor& one) {
    if (one.object == inquiry.identities[operand].object) return true;
    const c10::StorageImpl* storage = storage_of(one.tensor);
    if (storage == nullptr || device_slot_of(one.tensor) != record.device) return false;
    const trace::LineageId tag = origin_table().find(storage);
    return tag != trace::LineageId::none && std::ranges::find(history, tag) != history.end();
  };
  Carrier carrier;
  for (const ArgumentTensor& one : argument_tensors(inquiry.search, frame)) {
    if (!carries(one)) continue;
    if (carrier.name != nullptr && carrier.name != one.name) return {};
    carrier = {one.name, carrier.by_itself || one.by_itself};
  }
  return carrier;
}

// Whether a function belongs to a module whose weights all lie on one device, another one than the operand's. Plain
// functions work for who calls them.
enum class Side { neither, there, both };
Side side_of(const Inquiry& inquiry, std::size_t operand, const void* frame) {
  const void* module = module_called(frame);
  if (module == nullptr) return Side::neither;
  const Weights weights(inquiry.search, module);
  if (weights.some_on(inquiry.operands[operand].device)) return Side::both;
  return weights.all_on_one() ? Side::there : Side::neither;
}

// Whether what runs between a function and its caller is a container of torch's own whose parts are on both sides: then
// no line of the program hands anything over.
bool torch_hands_over(const Inquiry& inquiry, std::size_t operand, const void* frame, const void* caller) {
  for (frame = frame_previous(frame); frame != nullptr && frame != caller; frame = frame_previous(frame)) {
    if (side_of(inquiry, operand, frame) == Side::both) return true;
  }
  return false;
}

// Where a variable of a waiting function got its value, that is no argument of it.
std::optional<Handed> bound_in(const Inquiry& inquiry, std::size_t operand, const void* frame,
                               const std::string& name) {
  WrittenLink variable(name);
  visit_frame(frame, false, variable);
  if (variable.object() == nullptr || variable.found().index < code_all_arguments(frame_code(frame))) {
    return std::nullopt;
  }
  const auto binding = binding_at(inquiry, operand, Place{variable.object(), variable.found(), 0, 0, frame});
  return binding ? std::optional(Handed{binding->at, binding->name}) : std::nullopt;
}

// `y = y.to(first)`, and then nothing but `loss(scores, y)`: a value that nobody uses where it was taken, so that the
// line which took it there is the mistake.
bool is_taken_for_nothing(const Inquiry& inquiry, std::size_t operand, const Handed& crossing) {
  const trace::LineageNode node = runtime.recorder->lineage(inquiry.operands[operand].lineage);
  const trace::Position moved = runtime.recorder->site(node.site).user;
  if (node.how != trace::How::moved || moved.file != crossing.at.file || moved.function != crossing.at.function) {
    return false;
  }
  SourceFiles files;
  const SourceLines lines(files.whole(moved.file));
  if (!is_identifier(crossing.text) || !assigned_to(statement_at(lines, moved.line), crossing.text)) return false;
  const int end = end_of_function(lines, moved.line);
  for (int k = moved.line + 1; k <= end; ++k) {
    const bool gives = k >= crossing.at.line && k <= crossing.at.end_line;
    if (!gives && !is_blank(lines[k]) && has_word(lines[k], crossing.text)) return false;
  }
  return true;
}

// `state = state.to(stage.device)` before `state = stage(state, tables)`, which gives the tables as they are: the line
// that moves what comes with them.
std::optional<Handed> moved_beside(SourceFiles& files, const Handed& crossing) {
  if (!is_identifier(crossing.text)) return std::nullopt;
  const SourceLines lines(files.whole(crossing.at.file));
  const int definition = enclosing_line(lines, crossing.at.line, "def ");
  const std::string call = statement_at(lines, crossing.at.line);
  const std::string_view given = std::string_view(call).substr(std::min(call.find('('), call.size()));
  for (int line = crossing.at.line - 1; line > std::max(definition, 0); --line) {
    const std::string statement = statement_at(lines, line);
    const std::string_view target = trimmed(std::string_view(statement).substr(0, statement.find('=')));
    if (!is_identifier(target) || target == crossing.text || !has_word(given, target)) continue;
    const auto value = assigned_to(statement, target);
    if (!value || !trace::calls_method(*value, trace::kMoves) || has_word(*value, crossing.text)) continue;
    trace::Position at = crossing.at;
    at.line = at.end_line = line;
    at.column = at.end_column = -1;
    return Handed{at, std::string(target)};
  }
  return std::nullopt;
}

// The line of a function, before a call in it, that brought over what a variable has by now, itself or by what it
// calls; none where that was no line of it.
std::optional<trace::Position> brought_at(const Inquiry& inquiry, std::size_t operand, const void* frame,
                                          const std::string& variable, const trace::Position& call) {
  void* object = object_behind(frame, variable);
  const c10::TensorImpl* tensor = object != nullptr ? inquiry.search.tensor_at(object) : nullptr;
  const trace::LineageId history = tensor != nullptr ? tensor_history(tensor) : trace::LineageId::none;
  if (history == trace::LineageId::none) return std::nullopt;
  const trace::LineageNode node = runtime.recorder->lineage(history);
  if (node.how != trace::How::moved || !inquiry.is_wanted(operand, node.device)) return std::nullopt;
  for (const trace::Position& at : call_frames(runtime.recorder->site(node.site).user, node.calls)) {
    const bool before = at.file == call.file && at.function == call.function && at.line < call.line;
    if (before) return at;
  }
  return std::nullopt;
}

// `state, rest = to_device(device, state, rest)` before `stage(state, rest, tables)`: the same by a helper.
std::optional<Handed> brought_beside(const Inquiry& inquiry, std::size_t operand, const Handed& crossing) {
  const void* frame = running_frame(program_frame(inquiry.innermost), crossing.at);
  SourceFiles files;
  const std::string call = statement_at(SourceLines(files.whole(crossing.at.file)), crossing.at.line);
  const auto parts = call_text(call.substr(std::min(call.find(" = ") + 3, call.size())));
  if (frame == nullptr || !parts) return std::nullopt;
  for (const std::string& argument : parts->arguments) {
    if (argument == crossing.text || !is_identifier(argument)) continue;
    if (const auto at = brought_at(inquiry, operand, frame, argument, crossing.at)) return Handed{*at, argument};
  }
  return std::nullopt;
}

// Given to the outermost of the functions that work on the other side alone; or returned to one of them; or given by a
// module on both sides to a function that works for it.
bool find_given_across(const Inquiry& inquiry, std::size_t operand) {
  const void* frame = program_frame(inquiry.innermost);
  std::optional<Handed> crossing;
  std::optional<Handed> helped;  // given to the outermost function so far, whichever side it is on
  SourceFiles files;
  for (int calls = 0; frame != nullptr && calls < kMaxCalls; ++calls) {
    const Side side = side_of(inquiry, operand, frame);
    const void* caller = caller_of(frame);
    if (side == Side::both && !crossing) crossing = helped;
    if (side == Side::both || caller == nullptr) break;
    const Carrier carrier = carrier_of(inquiry, operand, frame);
    if (carrier.name == nullptr && is_comprehension(waits_at(frame))) {
      frame = caller;
      continue;
    }
    if (carrier.name == nullptr) {
      const bool inside = crossing && side == Side::there;
      if (auto bound = inside ? bound_in(inquiry, operand, frame, crossing->text) : std::nullopt) crossing = bound;
      break;
    }
    if (side == Side::there && torch_hands_over(inquiry, operand, frame, caller)) return true;
    const std::string argument = text_of(carrier.name);
    const Handed handed = given_by(files, caller, frame, argument).value_or(Handed{waits_at(caller), argument});
    helped = carrier.by_itself ? std::optional(handed) : std::nullopt;
    if (side == Side::there) crossing = handed;
    frame = caller;
  }
  if (crossing && !is_taken_for_nothing(inquiry, operand, *crossing)) {
    inquiry.found.add(trace::EvidenceKind::crossing_at, operand, crossing->at, crossing->text);
    auto beside = moved_beside(files, *crossing);
    if (!beside) beside = brought_beside(inquiry, operand, *crossing);
    if (beside) {
      inquiry.found.add(trace::EvidenceKind::crossing_beside_at, operand, beside->at, beside->text);
    }
  }
  return crossing.has_value();
}

// `soft = teacher(x)`: the statement takes its value from a call, and no loop over values that are there.
bool is_of_call(const trace::Position& at) {
  SourceFiles files;
  const SourceLines lines(files.whole(at.file));
  const std::string statement = statement_at(lines, at.line);
  return statement.find('(') != statement.npos && !statement.starts_with("for ");
}

// Returned by a function that works on the operand's device as a matter of course.
void find_returned_across(const Inquiry& inquiry, std::size_t operand) {
  const void* frame = program_frame(inquiry.innermost);
  const auto history = history_of(inquiry.operands[operand]);
  const auto made_elsewhere = [&](trace::LineageId id) {
    const trace::LineageNode node = runtime.recorder->lineage(id);
    return node.how == trace::How::derived && !is_running(frame, runtime.recorder->site(node.site).user);
  };
  if (std::ranges::none_of(history, made_elsewhere)) return;
  const std::uint32_t at = inquiry.search.variable_behind(inquiry.search.sighting(operand).place);
  if (at == kNoPlace) return;
  const Place& root = inquiry.search.place(at);
  const auto binding = root.frame == frame ? binding_at(inquiry, operand, root) : std::nullopt;
  if (!binding || !is_of_call(binding->at)) return;
  inquiry.found.add(trace::EvidenceKind::crossing_at, operand, binding->at, binding->name);
}

}  // namespace

void find_crossing(const Inquiry& inquiry, std::size_t operand) {
  if (!all_on_accelerators(inquiry)) return;
  if (!find_given_across(inquiry, operand)) find_returned_across(inquiry, operand);
}

}  // namespace devsan::hooks
