#include "hooks/inprocess/bridge/left_exception.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "hooks/inprocess/bridge/tensor_objects.h"
#include "hooks/inprocess/common/busy.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/common/thread_state.h"
#include "hooks/inprocess/events/collective_log.h"
#include "hooks/inprocess/events/device_messages.h"
#include "hooks/inprocess/events/failure_notes.h"
#include "hooks/inprocess/events/placements.h"
#include "hooks/inprocess/interpreter/byte_code.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/exit_call.h"
#include "hooks/inprocess/interpreter/frame_marks.h"
#include "hooks/inprocess/interpreter/own_attributes.h"
#include "hooks/inprocess/interpreter/python_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/interpreter/traceback_frames.h"
#include "hooks/inprocess/provenance/device_slots.h"
#include "hooks/inprocess/provenance/stack.h"
#include "hooks/inprocess/snapshot/exception_message.h"
#include "hooks/inprocess/snapshot/object_graph.h"
#include "hooks/torch_bridge/meeting.h"
#include "hooks/torch_bridge/operand_list.h"
#include "hooks/torch_bridge/thread_start.h"
#include "trace/clock.h"
#include "trace/fixed_text.h"
#include "trace/run_info_keys.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxTorchFrames = 8;       // of torch, around the one that raised
constexpr std::size_t kMaxEntries = 16;  // of a list or tuple
constexpr std::size_t kMaxMessage = 1024;
constexpr std::size_t kMaxFailureFrames = 32;

// `raise` and `assert`, rather than a call that raised.
bool raises_itself(const void* frame) {
  const void* code = frame_code(frame);
  return ByteCode(code).raises_at(frame_instruction(frame, code));
}

// What torch makes a view of to look at it is the tensor that the program knows.
const c10::TensorImpl* viewed_by(const c10::TensorImpl* tensor) {
  if (tensor == nullptr) return nullptr;
  using Pointer = c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  const at::Tensor value(Pointer::reclaim_copy(const_cast<c10::TensorImpl*>(tensor)));
  return value.is_view() ? value._base().unsafeGetTensorImpl() : tensor;
}

// The variables of torch's functions that are tensors, each once, and called what torch calls them there.
class Variables final : public LinkVisitor {
 public:
  explicit Variables(OperandList& operands) : operands_(operands) {}

  bool link(const Link& link, void* object) override {
    if (list_.empty()) {
      add(object, text_of(link.name));
    } else {
      add(object, list_ + "[" + std::to_string(link.index) + "]");
    }
    return list_.empty() || ++entries_ < kMaxEntries;
  }

  void visit_variables(const void* frame) {
    list_.clear();
    visit_frame(frame, false, *this);
  }

  // What the lists and tuples among the variables hold.
  void visit_entries(const void* frame) {
    Lists lists;
    visit_frame(frame, false, lists);
    for (const auto& [name, object] : lists.found) {
      list_ = name;
      entries_ = 0;
      visit_links(object, *this);
    }
    list_.clear();
  }

 private:
  struct Lists final : LinkVisitor {
    bool link(const Link& link, void* object) override {
      if (is_list(object) || is_tuple(object)) found.emplace_back(text_of(link.name), object);
      return true;
    }
    std::vector<std::pair<std::string, void*>> found;
  };

  void add(void* object, const std::string& name) {
    const c10::TensorImpl* tensor = viewed_by(tensor_of(object));
    if (tensor == nullptr || std::ranges::find(seen_, tensor) != seen_.end()) return;
    seen_.push_back(tensor);
    operands_.tensor(name, tensor);
  }

  OperandList& operands_;
  std::vector<const c10::TensorImpl*> seen_;
  std::string list_;  // whose entries are visited; empty for those of a frame
  std::size_t entries_ = 0;
};

// "cuda:0" and "cpu", as messages name devices; none for any other word.
std::optional<c10::Device> device_of_word(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, c10::DeviceType>, 4> kTypes = {
      {{"cpu", c10::kCPU}, {"cuda", c10::kCUDA}, {"xpu", c10::kXPU}, {"mps", c10::kMPS}}};
  const std::size_t colon = word.find(':');
  const auto type = std::ranges::find(kTypes, word.substr(0, colon), &decltype(kTypes)::value_type::first);
  if (type == kTypes.end()) return std::nullopt;
  if (colon == word.npos) return c10::Device(type->second);
  const std::string_view index = word.substr(colon + 1);
  const bool number = !index.empty() && index.size() <= 2 &&
                      std::ranges::all_of(index, [](unsigned char c) { return std::isdigit(c) != 0; });
  return number ? std::optional(c10::Device(type->second, static_cast<c10::DeviceIndex>(std::stoi(std::string(index)))))
                : std::nullopt;
}

// The first device that a message names and that no operand is on: the one which torch wanted.
void add_device_of_message(std::string_view message, OperandList& operands) {
  const auto of_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == ':' || c == '_'; };
  for (std::size_t begin = 0; begin < message.size(); ++begin) {
    std::size_t end = begin;
    while (end < message.size() && of_word(message[end])) ++end;
    const auto device = device_of_word(message.substr(begin, end - begin));
    begin = end;
    if (!device) continue;
    const trace::DeviceSlot slot = device_slot(device_key(*device));
    const auto there = [slot](const trace::OperandRecord& one) { return one.device == slot; };
    if (std::ranges::any_of(operands.records(), there)) continue;
    return operands.device("device", *device);
  }
}

// What the complaint is about: the tensors that the function which raised had before it, or else those of the functions
// of torch's that called it, until they are on two devices.
void add_operands(const void* innermost, std::string_view message, OperandList& operands) {
  Variables variables(operands);
  const void* frame = innermost;
  for (int depth = 0; frame != nullptr && depth < kMaxTorchFrames && is_torch_code(frame); ++depth) {
    variables.visit_variables(frame);
    if (depth == 0 && !operands.records().empty()) add_device_of_message(message, operands);
    if (!operands.mixed()) variables.visit_entries(frame);
    if (operands.mixed()) return;
    frame = frame_previous(frame);
  }
}

// That this ended the program, for whoever compares the ranks of a run. Of the message one line: it is the program's
// own.
void record_failure(const ThreadState& state, const void* exception, const TracebackFrames& frames) {
  const Stack stack(frames.innermost());
  trace::FailurePayload fixed{};
  fixed.time_ns = trace::wall_clock_ns();
  fixed.type = runtime.recorder->intern_string(type_name(exception));
  if (runtime.host->options.source) {
    ExceptionMessage message;
    tell_exception(exception, message);
    fixed.message = runtime.recorder->intern_string(message.text.view());
    if (message.is_arguments) fixed.flags = trace::kMessageIsArguments;
  }
  fixed.step = runtime.step.load(std::memory_order_relaxed);
  fixed.tid = state.tid;
  const auto shown = stack.frames().first(std::min(stack.frames().size(), kMaxFailureFrames));
  keep_source_lines(shown);
  runtime.recorder->add_failure(fixed, shown);
  tell_other_ranks({fixed.time_ns, fixed.step, runtime.recorder->string(fixed.type),
                    runtime.recorder->string(fixed.message), fixed.flags != 0, collective_log.last_failed()});
}

void look_at(ThreadState& state, const void* exception, const void* traceback) {
  char buffer[kMaxMessage];
  const std::string_view message = exception_text(exception, buffer, sizeof buffer);
  if (state.epoch != runtime.epoch_page->epoch.load(std::memory_order_relaxed)) start_thread(state);
  const TracebackFrames frames(traceback);
  record_failure(state, exception, frames);
  if (device_complaint(message) == DeviceComplaint::none) return;
  // Torch's worker threads and processes hand on what was raised there, with its traceback in the message.
  if (message.find("Traceback (most recent call last)") != message.npos) return;
  const void* innermost = frames.innermost();
  if (innermost == nullptr || !is_torch_code(innermost) || !raises_itself(innermost)) return;
  OperandList operands(trace::OperatorId::none);
  add_operands(innermost, message, operands);
  record_left(state, message, innermost, operands);
}

void look_at_placements_left_by(const void* traceback) {
  try {
    const TracebackFrames frames(traceback);
    look_at_last_placements(frames.innermost());
  } catch (const std::exception&) {  // short of memory
  }
}

// torch keeps the groups of a process in a dictionary, which it clears where the program destroys them.
void record_groups_left() noexcept {
  const OwnAttributes module = attributes_of_module("torch.distributed.distributed_c10d");
  const void* const groups = module ? module["_pg_map"] : nullptr;
  if (groups == nullptr || !is_dict(groups)) return;
  const auto count = field<std::ptrdiff_t>(groups, kDictUsed);
  if (count < 0 || (count == 0 && !has_entered_groups())) return;
  FixedText<24> text;
  text.append_number(static_cast<std::uint64_t>(count));
  runtime.recorder->add_run_info(trace::kGroupsLeftKey, text.view());
}

void look_at_exit() {
  ThreadState& state = thread_state();
  if (state.busy || runtime.epoch_page->epoch.load(std::memory_order_relaxed) == 0) return;
  const PythonSection section;
  const Busy busy(state);
  const void* exception = python.PySys_GetObject("last_value");
  const void* traceback = python.PySys_GetObject("last_traceback");
  look_at_placements_left_by(traceback);
  record_groups_left();
  if (exception == nullptr || traceback == nullptr || !is_exception(exception)) return;
  try {
    look_at(state, exception, traceback);
  } catch (const std::exception&) {  // a finding is worth no failure
  }
}

}  // namespace

void watch_left_exceptions() noexcept {
  call_at_interpreter_exit(look_at_exit);
}

}  // namespace devsan::hooks
