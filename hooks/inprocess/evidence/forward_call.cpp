// A module whose hooks bring over what it is called with runs by its `forward`, past them: `self.module.forward(x)`, or
// a bound method that somebody has kept.
#include <string>
#include <string_view>

#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/module_weights.h"
#include "hooks/inprocess/evidence/waiting_calls.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxCalls = 12;
constexpr std::string_view kForward = ".forward";

// `.forward` that is not called in this line, and no `super().forward`: it is kept, to be called later.
bool keeps_forward(std::string_view line) {
  for (std::size_t at = line.find(kForward); at != line.npos; at = line.find(kForward, at + 1)) {
    const std::string_view behind = line.substr(at + kForward.size());
    const bool whole = behind.empty() || std::string_view(" ,)]}:\n").find(behind.front()) != line.npos;
    if (whole && !line.substr(0, at).ends_with("super()") && line.substr(0, at).find('=') != line.npos) return true;
  }
  return false;
}

// A list of modules around the one that runs, or around the owner of a weight, with a hook of its own.
bool find_hook_on_list(const Inquiry& inquiry, std::size_t operand, const std::vector<const Holding*>& around) {
  for (const Holding* holding : around) {
    if (!is_never_called(holding->holder)) continue;
    const Holding* parent = inquiry.search.parent_module(holding->holder);
    for (const InputHook& hook : input_hooks_of(holding->holder)) {
      const auto at = hook_registration(inquiry, hook.code, parent != nullptr ? parent->link.name : nullptr);
      if (!at) continue;
      inquiry.found.add(trace::EvidenceKind::hook_on_list_at, operand, *at, type_name(holding->holder));
      return true;
    }
  }
  return false;
}

}  // namespace

void find_hook_on_list(const Inquiry& inquiry, std::size_t operand) {
  if (find_hook_on_list(inquiry, operand, inquiry.owners_of(operand))) return;
  const void* frame = program_frame(inquiry.innermost);
  for (int calls = 0; frame != nullptr && calls < kMaxCalls; ++calls, frame = caller_of(frame)) {
    const void* module = module_called(frame);
    if (module == nullptr) continue;
    if (find_hook_on_list(inquiry, operand, inquiry.search.outwards(inquiry.search.parent_module(module)))) return;
  }
}

void find_forward_call(const Inquiry& inquiry, std::size_t operand) {
  const void* frame = program_frame(inquiry.innermost);
  for (int calls = 0; frame != nullptr && calls < kMaxCalls; ++calls) {
    const void* caller = caller_of(frame);
    if (caller == nullptr) return;
    const bool forward = is_name(field<const void*>(frame_code(frame), code_members.name), "forward");
    const void* module = forward && called_by_program(frame, caller) ? module_called(frame) : nullptr;
    if (module != nullptr && !input_hooks_of(module).empty()) {
      const trace::Position call = waits_at(caller);
      SourceFiles files;
      const std::string statement = statement_at(SourceLines(files.whole(call.file)), call.line);
      // A subclass's own `forward` calls the one that it replaces, inside of the hooks.
      if (statement.find("super().forward") != statement.npos) return;
      const bool here = statement.find(std::string(kForward) + "(") != statement.npos;
      const auto kept = here ? std::nullopt : only_load(inquiry, "forward", keeps_forward);
      inquiry.found.add(trace::EvidenceKind::forward_called_at, operand, kept ? *kept : call, type_name(module));
      return;
    }
    frame = caller;
  }
}

}  // namespace devsan::hooks
