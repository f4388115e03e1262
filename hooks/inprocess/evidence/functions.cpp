// Functions that have to do with an operand: the one whose argument's default value it is, and the hooks that run when
// the module that owns it is called.
#include <algorithm>
#include <string>
#include <unordered_set>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/module_weights.h"
#include "hooks/inprocess/interpreter/byte_code.h"
#include "hooks/inprocess/interpreter/code_table.h"
#include "hooks/inprocess/interpreter/own_attributes.h"
#include "hooks/inprocess/interpreter/python_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/source/code_names.h"
#include "hooks/inprocess/source/source_files.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxDecorators = 16;
constexpr int kMaxFrames = 256;

std::string name_of(const void* code) {
  return std::string(runtime.recorder->string(qualified_name(code)));
}

// The line with the function's `def`: the first line of its code is that of its decorators.
trace::Position definition(const void* code) {
  trace::Position at = position_of(code, 0);
  at.line = at.end_line = code_first_line(code);
  at.column = at.end_column = -1;
  SourceFiles files;
  for (int line = at.line; line < at.line + kMaxDecorators; ++line) {
    std::string_view text = files.line(at.file, line);
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    if (!text.starts_with("def ") && !text.starts_with("async def ")) continue;
    at.line = at.end_line = line;
    break;
  }
  return at;
}

// The name of the argument whose default value an object is; null where it is none.
const void* argument_with_default(const void* function, const void* object) {
  const void* code = code_of_function(function);
  const void* defaults = code_api().PyFunction_GetDefaults(const_cast<void*>(function));
  if (defaults != nullptr && is_tuple(defaults)) {
    for (std::ptrdiff_t k = 0; k < size_of(defaults); ++k) {
      if (tuple_entry(defaults, k) == object)
        return code_local_name(code, code_arguments(code) - size_of(defaults) + k);
    }
  }
  void* by_name = code_api().PyFunction_GetKwDefaults(const_cast<void*>(function));
  std::ptrdiff_t at = 0;
  void* key = nullptr;
  void* value = nullptr;
  while (by_name != nullptr && is_dict(by_name) && python.PyDict_Next(by_name, &at, &key, &value) != 0) {
    if (value == object) return key;
  }
  return nullptr;
}

// Whether a function may bring something to a device itself.
bool mentions_moves(const void* code) {
  constexpr std::string_view kMoves[] = {"to", "cuda", "data", "copy_", "device"};
  return std::ranges::any_of(kMoves, [code](std::string_view name) { return mentions_text(code, name); });
}

// Many have hooks that are about something else, and the more so the further out: one of a module around the owner has
// to be seen to move something.
void add_hook(const Inquiry& inquiry, std::size_t operand, const void* code, bool of_owner) {
  if (!of_owner && !mentions_moves(code)) return;
  const auto at = hook_registration(inquiry, code);
  inquiry.found.add(trace::EvidenceKind::owner_forward_hook, operand, at ? *at : definition(code), name_of(code));
}

// The code of a `forward` of the module's own, which stands before the one of its class: some libraries so wrap it.
const void* own_forward_of(const void* module) {
  const OwnAttributes attributes(module);
  const void* replaced = attributes["forward"];
  const void* function = replaced != nullptr ? function_behind(replaced) : nullptr;
  return function != nullptr ? code_of_function(function) : nullptr;
}

void add_hooks_of_module(const Inquiry& inquiry, std::size_t operand, const void* module, bool of_owner) {
  for (const InputHook& hook : input_hooks_of(module)) add_hook(inquiry, operand, hook.code, of_owner);
  if (const void* forward = own_forward_of(module)) add_hook(inquiry, operand, forward, of_owner);
}

// What runs when an object is called: a function, or the `__call__` of its class.
const void* function_called(const void* object) {
  if (const void* function = function_behind(object)) return function;
  for (const void* function : functions_of_type(type_of(object))) {
    if (is_name(field<const void*>(code_of_function(function), code_members.name), "__call__")) return function;
  }
  return nullptr;
}

// By identity: torch keeps both dictionaries by one number object of the hook's.
bool has_key(const void* dict, const void* wanted) {
  std::ptrdiff_t at = 0;
  void* key = nullptr;
  void* value = nullptr;
  while (dict != nullptr && is_dict(dict) && python.PyDict_Next(const_cast<void*>(dict), &at, &key, &value) != 0) {
    if (key == wanted) return true;
  }
  return false;
}

// The receiver of a method that runs.
class Receiver final : public LinkVisitor {
 public:
  explicit Receiver(const void* frame) { visit_frame(frame, false, *this); }
  const void* object() const { return object_; }
  bool link(const Link& link, void* object) override {
    if (link.index == 0) object_ = object;
    return false;
  }

 private:
  const void* object_ = nullptr;
};

// The modules that are being called, so that their hooks have run: those in a frame of nn.Module's own call.
std::unordered_set<const void*> called_modules(const void* innermost) {
  std::unordered_set<const void*> called;
  const void* frame = innermost;
  for (int depth = 0; frame != nullptr && depth < kMaxFrames; ++depth, frame = frame_previous(frame)) {
    const void* code = frame_code(frame);
    const std::uint32_t marks = code_table.marks(code);
    if ((marks & kNoCode) != 0 || (marks & kTorchCode) == 0) continue;
    if (is_name(field<const void*>(code, code_members.name), "_call_impl")) called.insert(Receiver(frame).object());
  }
  return called;
}

}  // namespace

std::optional<trace::Position> hook_registration(const Inquiry& inquiry, const void* hook_code, const void* owner) {
  std::vector<trace::Position> all;
  std::vector<trace::Position> naming;
  std::vector<trace::Position> of_owner;
  const void* name = field<const void*>(hook_code, code_members.name);
  for (const void* code : inquiry.own_code.code()) {
    if (!mentions_text(code, "register_forward_pre_hook")) continue;
    const ByteCode byte_code(code);
    const auto& instructions = byte_code.instructions();
    for (std::size_t k = 0; k < instructions.size(); ++k) {
      const Instruction& one = instructions[k];
      if (one.operation != Operation::load_attribute || !is_name(one.operand, "register_forward_pre_hook")) continue;
      all.push_back(position_of(code, one.offset));
      if (owner != nullptr && k > 0 && same_name(instructions[k - 1].operand, owner)) of_owner.push_back(all.back());
      for (std::size_t next = k + 1; next < std::min(k + 5, instructions.size()); ++next) {
        if (same_name(instructions[next].operand, name)) naming.push_back(all.back());
      }
    }
  }
  if (of_owner.size() == 1) return of_owner.front();
  if (naming.size() == 1) return naming.front();
  if (naming.empty() && all.size() == 1) return all.front();
  return std::nullopt;
}

void find_default_argument(const Inquiry& inquiry, std::size_t operand) {
  std::vector<const void*> objects{inquiry.object_of(operand)};
  for (const Holding* at : inquiry.owners_of(operand)) objects.push_back(at->holder);
  for (const void* function : inquiry.own_code.functions()) {
    const void* argument = nullptr;
    for (std::size_t k = 0; argument == nullptr && k < objects.size(); ++k) {
      argument = objects[k] != nullptr ? argument_with_default(function, objects[k]) : nullptr;
    }
    if (argument == nullptr) continue;
    const void* code = code_of_function(function);
    inquiry.found.add(trace::EvidenceKind::default_argument, operand, definition(code),
                      name_of(code) + "(" + text_of(argument) + ")");
    return;
  }
}

std::vector<InputHook> input_hooks_of(const void* module) {
  std::vector<InputHook> found;
  const OwnAttributes attributes(module);
  void* hooks = attributes["_forward_pre_hooks"];
  void* with_names = attributes["_forward_pre_hooks_with_kwargs"];
  std::ptrdiff_t at = 0;
  void* key = nullptr;
  void* value = nullptr;
  while (hooks != nullptr && is_dict(hooks) && python.PyDict_Next(hooks, &at, &key, &value) != 0) {
    const void* function = function_called(value);
    if (function != nullptr) found.push_back({code_of_function(function), has_key(with_names, key)});
  }
  return found;
}

void find_forward_hooks(const Inquiry& inquiry, std::size_t operand) {
  const std::vector<const Holding*> owners = inquiry.owners_of(operand);
  const std::unordered_set<const void*> called = called_modules(inquiry.innermost);
  for (const Holding* at : owners) {
    if (!called.contains(at->holder) && !is_never_called(at->holder))
      add_hooks_of_module(inquiry, operand, at->holder, at == owners.front());
  }
}

}  // namespace devsan::hooks
