// A hook that brings over what its module is called with, and sees only what is given by position, or takes only some
// of that: what is given by name passes it, or is handed on as it came.
#include <algorithm>
#include <string>
#include <vector>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/call_frames.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/module_weights.h"
#include "hooks/inprocess/evidence/waiting_calls.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/lineage_nodes.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/snapshot/argument_tensors.h"
#include "hooks/inprocess/source/code_names.h"
#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxCalls = 12;

// Whether one of these was moved to its device by this function, or by what it called.
bool has_moved(const void* code, const std::vector<ArgumentTensor>& arguments) {
  const trace::Position function = position_of(code, 0);
  return std::ranges::any_of(arguments, [&](const ArgumentTensor& one) {
    const trace::LineageId tag = tensor_history(one.tensor);
    if (tag == trace::LineageId::none) return false;
    const trace::LineageNode node = runtime.recorder->lineage(tag);
    if (node.how != trace::How::moved) return false;
    const auto calls = call_frames(runtime.recorder->site(node.site).user, node.calls);
    return std::ranges::any_of(calls, [&](const trace::Position& at) { return same_function(at, function); });
  });
}

// The argument that an operand is, by itself; empty where it is none.
std::string argument_of(const std::vector<ArgumentTensor>& arguments, const void* object) {
  const auto carrier = std::ranges::find_if(
      arguments, [object](const ArgumentTensor& one) { return one.by_itself && one.object == object; });
  if (carrier == arguments.end()) return "";
  return text_of(carrier->name);
}

// Whether the call that stands there gives an argument by its name.
bool is_given_by_name(const std::string& name, const trace::Position& call) {
  SourceFiles files;
  const SourceLines lines(files.whole(call.file));
  const auto text = call_text(code_text(lines, call));
  const auto names_it = [&](const std::string& argument) { return argument.starts_with(name + "="); };
  return text && std::ranges::any_of(text->arguments, names_it);
}

// The line of a hook that returns what its module is called with instead; that of its first line where there are
// several.
trace::Position return_of(const void* code) {
  trace::Position at = position_of(code, 0);
  at.line = at.end_line = code_first_line(code);
  at.column = at.end_column = -1;
  SourceFiles files;
  const SourceLines lines(files.whole(at.file));
  int found = 0;
  for (int k = at.line + 1; k <= end_of_function(lines, at.line + 1); ++k) {
    if (!trimmed(lines[k]).starts_with("return ")) continue;
    if (found != 0) return at;
    found = k;
  }
  if (found != 0) at.line = at.end_line = found;
  return at;
}

// Of one module that is being called: whether a hook of its own brought over what it was given, and not this.
bool find_hook_of(const Inquiry& inquiry, std::size_t operand, const void* frame, const void* caller) {
  const void* module = module_called(frame);
  if (module == nullptr) return false;
  const auto arguments = argument_tensors(inquiry.search, frame);
  const std::string name = argument_of(arguments, inquiry.object_of(operand));
  if (name.empty()) return false;
  const bool by_name = is_given_by_name(name, waits_at(caller));
  for (const InputHook& hook : input_hooks_of(module)) {
    if (!has_moved(hook.code, arguments)) continue;
    if (!by_name) {
      inquiry.found.add(trace::EvidenceKind::hook_leaves_argument_at, operand, return_of(hook.code), name);
      return true;
    }
    const auto registered = hook.takes_names ? std::nullopt : hook_registration(inquiry, hook.code);
    inquiry.found.add(trace::EvidenceKind::hook_leaves_names_at, operand,
                      registered ? *registered : return_of(hook.code), name);
    return true;
  }
  return false;
}

}  // namespace

void find_hook_inputs(const Inquiry& inquiry, std::size_t operand) {
  const void* frame = program_frame(inquiry.innermost);
  for (int calls = 0; frame != nullptr && calls < kMaxCalls; ++calls) {
    const void* caller = caller_of(frame);
    if (caller != nullptr && !called_by_program(frame, caller) && find_hook_of(inquiry, operand, frame, caller)) return;
    frame = caller;
  }
}

}  // namespace devsan::hooks
