#include "hooks/torch_bridge/python_operands.h"

#include <exception>
#include <optional>
#include <string>

#include "hooks/inprocess/bridge/tensor_objects.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/device_slots.h"
#include "hooks/inprocess/provenance/lineage_nodes.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/snapshot/named_objects.h"
#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"
#include "hooks/torch_bridge/tensor_fields.h"
#include "trace/odd_operand.h"

namespace devsan::hooks {

namespace {

// The first tensor on the way that an expression takes from a variable: "x" of `x.detach()`, "self.q[0]" of
// `self.q[0].T`; `whole` where that is all of the expression. Null where the way leads through a call, or to none.
struct Found {
  const c10::TensorImpl* tensor = nullptr;
  bool whole = false;
};
Found tensor_behind(const void* frame, std::string_view expression) {
  const std::size_t end = end_of_name(expression, 0);
  void* object = end > 0 ? variable_named(frame, expression.substr(0, end)) : nullptr;
  std::string_view rest = expression.substr(end);
  while (object != nullptr) {
    if (const c10::TensorImpl* tensor = tensor_of(object)) return {tensor, rest.empty()};
    object = next_object(frame, object, rest);
  }
  return {};
}

bool same_type(trace::DeviceSlot one, std::string_view device) {
  const std::string_view name = runtime.recorder->string(runtime.recorder->device_name(one));
  return name.substr(0, name.find(':')) == device.substr(0, device.find(':'));
}

// What this thread's last operator made on the line that fails, or in a function that is called there: the value of an
// expression that no variable has.
trace::LineageNode made_for(const ThreadState& state, const trace::Position& here, std::string_view expression,
                            std::string_view device) {
  if (state.ring == nullptr) return {};
  const trace::RingEntry& last =
      state.ring->entries[(state.ring_index + trace::kRingEntries - 1) % trace::kRingEntries];
  const trace::Position at = runtime.recorder->site(last.site).user;
  std::string_view function = runtime.recorder->string(at.function);
  function.remove_prefix(function.rfind('.') + 1);
  const bool here_itself = at.file == here.file && at.line == here.line;
  if (!same_type(last.device, device) || (!here_itself && call_in(expression, function) == expression.npos)) return {};
  trace::LineageNode node{};
  node.site = last.site;
  node.op = last.op;
  node.device = last.device;
  node.how = trace::How::derived;
  return node;
}

// "cuda:0" of "can't convert cuda:0 device type tensor to numpy", "cuda" of "…a gradient with device type 'cuda' to…".
std::string device_named(std::string_view message, std::string_view before) {
  std::size_t begin = message.find(before);
  if (begin == message.npos) return "";
  begin += before.size();
  return std::string(message.substr(begin, message.find_first_of(" '", begin) - begin));
}

struct Refusal {
  const void* frame;
  trace::Position at;
  std::string_view message;
  const ThreadState& state;
};

void name_argument(OperandList& operands, std::string_view argument) {
  if (!operands.records().empty()) {
    operands.records().back().argument = runtime.recorder->intern_string(argument);
  }
}

void add_unseen(const trace::LineageNode& made, std::string_view expression, std::string_view device,
                OperandList& operands) {
  const bool known = made.site != trace::SiteId::none;
  const trace::DeviceSlot slot = known ? made.device : runtime.recorder->intern_device(device);
  operands.unseen(slot, known ? step_like(made) : trace::LineageId::none, runtime.recorder->intern_string(expression));
}

// A view, as `x.detach()`, has the history of what it is taken from; what `p.grad * scale` computes has its own.
enum class Taken { as_view, as_value };

void add_value(const Refusal& refusal, const std::string& expression, Taken taken, std::string_view device,
               OperandList& operands) {
  const Found found = tensor_behind(refusal.frame, expression);
  const bool there = found.tensor != nullptr && same_type(device_slot(TensorFields::device(found.tensor)), device);
  const trace::LineageNode made = made_for(refusal.state, refusal.at, expression, device);
  const bool computed = taken == Taken::as_value && !found.whole;
  if (there && !computed) return operands.tensor(0, -1, found.tensor);
  add_unseen(made, expression, device, operands);
}

// "args[0]" of `func(*args, **kwargs)`, by which a `__torch_function__` goes on, as the mode of a default device does;
// "x" of `x.numpy()`. Empty for another call.
std::string converted_by(const CallText& call) {
  const std::size_t dot = call.callee.rfind('.');
  if (dot != std::string::npos) return call.callee.substr(0, dot);
  const bool unpacks = !call.arguments.empty() && call.arguments.front().starts_with('*');
  const std::string name = unpacks ? call.arguments.front().substr(1) : std::string();
  return is_identifier(name) ? name + "[0]" : std::string();
}

// `x.numpy()`, at any depth in torch's own functions that NumPy calls for it.
void add_converted(const Refusal& refusal, const std::string& code, OperandList& operands) {
  const auto call = call_text(code);
  const std::string converted = call ? converted_by(*call) : std::string();
  if (converted.empty()) return;
  const std::string device = device_named(refusal.message, "can't convert ");
  if (device.empty()) return;
  add_value(refusal, converted, Taken::as_view, device, operands);
  name_argument(operands, "self");
  operands.device("numpy", c10::Device(c10::kCPU));
}

// `p.grad = value`: an assignment is the statement, whatever columns its instruction has.
void add_assigned_gradient(const Refusal& refusal, const std::string& statement, OperandList& operands) {
  constexpr std::string_view kTarget = ".grad = ";
  const std::size_t target = statement.find(kTarget);
  if (target == std::string::npos) return;
  const c10::TensorImpl* owner = tensor_behind(refusal.frame, std::string_view(statement).substr(0, target)).tensor;
  const std::string device = device_named(refusal.message, "with device type '");
  if (owner == nullptr || device.empty()) return;
  operands.tensor("self", owner);
  add_value(refusal, statement.substr(target + kTarget.size()), Taken::as_value, device, operands);
  name_argument(operands, "grad");
}

}  // namespace

void add_python_operands(const ThreadState& state, std::string_view message, const void* thread,
                         OperandList& operands) noexcept {
  const bool converts = trace::refused_by_numpy(message);
  if (!converts && message.find(trace::kGradientRefused) == message.npos) return;
  try {
    const void* frame = current_frame(thread);
    if (frame == nullptr || !code_api().complete) return;
    SourceFiles files;
    const void* code = frame_code(frame);
    const trace::Position at = position_of(code, frame_instruction(frame, code), Columns::of_all);
    const Refusal refusal{frame, at, message, state};
    const SourceLines lines(files.whole(refusal.at.file));
    if (converts) return add_converted(refusal, code_text(lines, refusal.at), operands);
    add_assigned_gradient(refusal, statement_at(lines, refusal.at.line), operands);
  } catch (const std::exception&) {  // operands are worth no failure
  }
}

}  // namespace devsan::hooks
