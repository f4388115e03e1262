#include "hooks/torch_bridge/meeting.h"

#include <c10/util/Exception.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <typeinfo>

#include "hooks/inprocess/common/busy.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/events/device_messages.h"
#include "hooks/inprocess/events/halt.h"
#include "hooks/inprocess/events/meeting_table.h"
#include "hooks/inprocess/events/short_report.h"
#include "hooks/inprocess/events/silence.h"
#include "hooks/inprocess/events/stop.h"
#include "hooks/inprocess/interpreter/code_table.h"
#include "hooks/inprocess/interpreter/frame_marks.h"
#include "hooks/inprocess/interpreter/python_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/interpreter/python_start.h"
#include "hooks/inprocess/interpreter/python_thread.h"
#include "hooks/inprocess/provenance/stack.h"
#include "hooks/inprocess/provenance/thread_caches.h"
#include "hooks/inprocess/snapshot/names.h"
#include "hooks/inprocess/snapshot/traced_call.h"
#include "hooks/torch_bridge/backward.h"
#include "hooks/torch_bridge/boxed_call.h"
#include "hooks/torch_bridge/event.h"
#include "hooks/torch_bridge/examine.h"
#include "hooks/torch_bridge/generator_state.h"
#include "hooks/torch_bridge/gradient_check.h"
#include "hooks/torch_bridge/live_memory.h"
#include "hooks/torch_bridge/operand_list.h"
#include "hooks/torch_bridge/process_group.h"
#include "hooks/torch_bridge/python_operands.h"
#include "hooks/torch_bridge/thread_start.h"
#include "hooks/torch_bridge/thrown_exception.h"
#include "hooks/torch_bridge/traced_failure.h"
#include "trace/clock.h"
#include "trace/odd_operand.h"

namespace devsan::hooks {

namespace {

bool contains(std::string_view text, std::string_view part) noexcept {
  return text.find(part) != text.npos;
}

std::uint64_t device_digest(std::span<const trace::OperandRecord> operands) noexcept {
  std::uint64_t digest = operands.size();
  for (const trace::OperandRecord& operand : operands) digest = digest * 131 + std::uint64_t(operand.device);
  return digest;
}

trace::StringId intern_message(std::string_view message) noexcept {
  char buffer[4096];
  return runtime.recorder->intern_string(runtime.has_python ? python_wording(message, buffer, sizeof buffer) : message);
}

// A lack of memory is as certain as a complaint about devices.
DeviceComplaint complaint_of(std::string_view message) noexcept {
  return is_out_of_memory(message) ? DeviceComplaint::certain : device_complaint(message);
}

void keep_error(ThreadState& state, std::string_view message) noexcept {
  const DeviceComplaint complaint = complaint_of(message);
  if (complaint == DeviceComplaint::none) return;
  state.device_error = intern_message(message);
  state.device_error_certain = complaint == DeviceComplaint::certain;
}

// Kernels that are written in Python (meta functions, FakeTensor, __torch_dispatch__) raise Python exceptions. What an
// operator inside such a kernel has raised is a finding already.
void note_python_error(ThreadState& state) noexcept {
  const PythonSection section;
  const void* inside_cpp = python_exception_in_flight();
  char buffer[1024];
  const std::string_view text =
      exception_text(inside_cpp != nullptr ? inside_cpp : section.error(), buffer, sizeof buffer);
  const bool from_inside = state.unhandled != nullptr && state.raised_depth > state.depth;
  state.raised_depth = state.depth;
  if (from_inside && runtime.recorder->string(state.unhandled->message) == text) return;
  keep_error(state, text);
}

// The host's allocator makes its error by another constructor than those of error_hook.cpp: it is read as it passes.
void note_lack_of_host_memory(ThreadState& state) noexcept {
  const auto* type = static_cast<const std::type_info*>(state.thrown_type);
  if (state.thrown == nullptr || type == nullptr || *type != typeid(c10::Error)) return;
  const std::string& message = static_cast<const c10::Error*>(state.thrown)->msg();
  if (is_out_of_memory(message)) keep_error(state, message);
}

// Keeps an error that Python raised, too. False where PyTorch's complaint was about something else than devices.
bool has_device_error(ThreadState& state, const void* caller) noexcept {
  const Busy busy(state);
  if (state.device_error == trace::StringId::none) note_lack_of_host_memory(state);
  if (state.device_error == trace::StringId::none && may_take_gil(state, caller)) note_python_error(state);
  return state.device_error != trace::StringId::none;
}

OperandList list_operands(ThreadState& state, trace::OperatorId op, const ArgumentsView& arguments) noexcept {
  const Busy busy(state);
  OperandList operands(op);
  arguments.visit(operands);
  return operands;
}

std::span<const trace::OperandRecord> operands_of(const trace::MeetingPayload& meeting) noexcept {
  return {reinterpret_cast<const trace::OperandRecord*>(&meeting + 1), meeting.operands};
}

// A finding that a program may well catch is not said before the process ends of it. Of this thread.
thread_local const trace::MeetingPayload* unsaid = nullptr;

// A process that ends with status 0 on the thread that had raised caught the exception, although that thread ran no
// operator afterwards. In a fork child the epoch differs, and the finding is the parent's.
void judge_at_exit(int status, void*) {
  ThreadState& state = thread_state();
  const std::uint64_t epoch = runtime.epoch_page->epoch.load(std::memory_order_relaxed);
  const bool own = state.epoch == epoch && epoch != 0;
  if (status != 0 && own && unsaid != nullptr && state.unhandled == unsaid)
    say_first_finding(*unsaid, operands_of(*unsaid));
  if (status == 0 && state.unhandled != nullptr && own) {
    trace::Recorder::set_meeting_flags(state.unhandled, trace::kHandled);
  }
  // The handlers that are still to run, run all the same.
  if (const int wanted = status_with_halt(status, true); wanted != status) ::exit(wanted);
}

void watch_exit() noexcept {
  static std::atomic<bool> watched{false};
  if (!watched.exchange(true)) ::on_exit(judge_at_exit, nullptr);
}

// A frame that may be gone, and its memory another's.
struct KnownFrame {
  const void* frame = nullptr;
  const void* code = nullptr;
  bool operator==(const KnownFrame&) const = default;
};

// The outermost Python frame of a thread. It is gone once an exception that nobody caught has left it; what runs then
// (sys.excepthook, atexit, finalizers) runs in frames of its own.
KnownFrame outermost_frame(const void* thread) noexcept {
  KnownFrame outermost;
  for (const void* frame = current_frame(thread); frame != nullptr; frame = frame_previous(frame)) {
    if (has_code(frame)) outermost = {frame, frame_code(frame)};
  }
  return outermost;
}

// Where the thread's unhandled exception was raised. Only threads that raise have one.
thread_local KnownFrame raised_below;

// The frame of torch.compile's that the exception was raised below: it catches all, and raises most again in words of
// its own, with operators of its own in between. Nothing without one.
thread_local KnownFrame compiled_by;

KnownFrame compiler_around(const void* thread) noexcept {
  const void* frame = compiling_frame(current_frame(thread));
  return frame != nullptr ? KnownFrame{frame, frame_code(frame)} : KnownFrame{};
}

// A finding that is in the trace. `loud`: neither the program nor a suppression silences it.
struct Recorded {
  trace::MeetingPayload* meeting = nullptr;
  bool loud = false;
};

void expect_handling(ThreadState& state, const Recorded& recorded) noexcept {
  const void* thread = runtime.has_python ? python.PyGILState_GetThisThreadState() : nullptr;
  raised_below = thread != nullptr ? outermost_frame(thread) : KnownFrame();
  compiled_by = thread != nullptr ? compiler_around(thread) : KnownFrame();
  state.unhandled = recorded.meeting;
  // What leaves an operator in C++ finds a handler there, or would have ended the process. In a program without Python
  // that is the end of it; a thread of the engine hands it on to the one that called backward.
  const bool from_python = raised_below != KnownFrame();
  if (recorded.loud && runtime.has_python) halt_unless_handled(recorded.meeting, !from_python);
  watch_exit();
}

// Without an exception in flight, the thread's last one was caught, unless it left the thread's frames.
void notice_handled(ThreadState& state, const void* thread) noexcept {
  if (exception_in_flight(thread) || outermost_frame(thread) != raised_below) return;
  if (compiled_by != KnownFrame() && compiler_around(thread) == compiled_by) return;
  trace::Recorder::set_meeting_flags(state.unhandled, trace::kHandled);
  state.unhandled = nullptr;
}

struct Details {
  std::uint32_t flags = 0;
  trace::StringId message = trace::StringId::none;
  trace::OperatorId op = trace::OperatorId::none;
  trace::SiteId site = trace::SiteId::none;
  trace::SiteId fallback = trace::SiteId::none;  // shown where the thread has no Python frames
  const void* innermost = nullptr;               // of frames that are not the thread's own; null: those
  const TracedFailure* traced = nullptr;         // of an operator that failed below torch.compile
};

trace::MeetingPayload* write_meeting(ThreadState& state, const Details& details, OperandList& operands) noexcept {
  const Stack stack = details.innermost != nullptr ? Stack(details.innermost) : Stack(state, details.fallback);
  trace::FrameRecord forward[2];
  std::size_t forward_count = 0;
  if (state.backward_depth != 0) forward_count = frames_of_site(forward_origin(state).site, forward);
  trace::MeetingPayload fixed{};
  fixed.flags = details.flags;
  fixed.time_ns = trace::wall_clock_ns();
  fixed.message = details.message;
  fixed.site = details.site;
  fixed.op = details.op;
  fixed.phase = stack.phase();
  if (fixed.phase == trace::Phase::other && operands.requires_grad()) fixed.phase = trace::Phase::forward;
  fixed.step = runtime.step.load(std::memory_order_relaxed);
  fixed.last_step = fixed.step;
  fixed.tid = state.tid;
  fixed.thread_name = state.ring != nullptr ? state.ring->name : trace::StringId::none;
  keep_source_lines(stack.frames());
  keep_source_lines({forward, forward_count});
  for (const trace::OperandRecord& operand : operands.records()) keep_source_lines(operand.lineage);
  return runtime.recorder->add_meeting(fixed, operands.records(), stack.frames(), {forward, forward_count},
                                       stack.native_frames());
}

std::uint32_t raised_flags(OperandList& operands) noexcept {
  return operands.records().empty() ? trace::kRaised | trace::kNoOperands : trace::kRaised;
}

// Of what this thread raised last below torch.compile, which may catch it and have the function run after all.
thread_local const trace::MeetingPayload* raised_in_compiler = nullptr;

// What the same line raises then is another exception, and the program's own to catch.
void judge_anew(const Details& details, trace::MeetingPayload* known) noexcept {
  if (details.traced != nullptr) {
    raised_in_compiler = known;
  } else if (known == raised_in_compiler) {
    trace::Recorder::clear_meeting_flags(known, trace::kHandled);
    raised_in_compiler = nullptr;
  }
}

// The place that a report gives as `where`.
trace::Position place_of(const trace::MeetingPayload& meeting) noexcept {
  const std::span frames{reinterpret_cast<const trace::FrameRecord*>(operands_of(meeting).data() + meeting.operands),
                         meeting.frames};
  for (const trace::FrameRecord& frame : frames) {
    if ((frame.flags & trace::kTorchFrame) == 0) return frame.position;
  }
  return runtime.recorder->site(meeting.site).user;
}

bool has_suppression(const trace::MeetingPayload& meeting) noexcept {
  return is_suppressed(trace::kind_of_meeting(meeting.flags), meeting.op, place_of(meeting));
}

// A backward fails for one line of the forward at a time, and on the engine's threads it has no line of its own.
MeetingKey key_of(const ThreadState& state, const Details& details, OperandList& operands) noexcept {
  MeetingKey key;
  key.site = details.site != trace::SiteId::none ? details.site : details.fallback;
  if ((details.flags & trace::kRaised) != 0 && state.backward_depth != 0) key.forward = forward_origin(state).site;
  key.op = details.op;
  key.devices = device_digest(operands.records());
  key.flags = details.flags;
  return key;
}

// An operator that was given stand-ins for the program's tensors, as torch.compile does.
void tell_as_run(ThreadState& state, Details& details, OperandList& operands, const void* thread,
                 std::optional<TracedFailure>& traced) noexcept {
  traced.emplace(current_frame(thread));
  traced->replace(operands);
  details.traced = &*traced;
  details.innermost = traced->innermost();
  if (details.innermost != nullptr) details.site = call_site(state.caches, details.innermost, true).id;
}

// The interpreter's state of the thread, for those who may look at the program's objects; null for others.
const void* python_to_search(ThreadState& state, const void* caller) noexcept {
  if (!runtime.has_python) {
    look_for_python(is_in_python_bindings(caller));
    state.outer.python = python_thread(state);
  }
  return may_take_gil(state, caller) ? state.outer.python : nullptr;
}

// The same outside of every operator, where torch's bindings may have the GIL, or may not.
const void* python_with_gil(const void* thread) noexcept {
  return thread != nullptr && interpreter_lives() && python.PyGILState_Check() != 0 ? thread : nullptr;
}

// Whether autograd runs a backward on a thread of its own: its frames begin with a function of the program's that torch
// calls, or with torch's.
bool is_engine_thread(const ThreadState& state, const void* innermost) noexcept {
  if (state.backward_depth == 0 || innermost == nullptr) return false;
  const void* outermost = innermost;
  while (const void* around = frame_previous(outermost)) outermost = around;
  return is_torch_code(outermost);
}

// `searched`: the thread's interpreter state, whose objects may be looked at; null where they may not.
Recorded record(ThreadState& state, Details details, OperandList& operands, const void* searched) noexcept {
  const bool raised = (details.flags & trace::kRaised) != 0;
  const bool no_memory = is_out_of_memory(runtime.recorder->string(details.message));
  if (no_memory) details.flags |= trace::kOutOfMemory;
  const Silence silence = silence_by_program(state, trace::kind_of_meeting(details.flags));
  details.flags |= flags_of(silence);
  const MeetingKey key = key_of(state, details, operands);
  if (trace::MeetingPayload* known = meeting_table.find(key, state.epoch)) {
    trace::Recorder::bump_meeting(known, runtime.step.load(std::memory_order_relaxed));
    if (raised) judge_anew(details, known);
    return {known, raised && silence == Silence::none && !has_suppression(*known)};
  }
  if (details.traced != nullptr) details.traced->give_histories(operands);
  Facts facts;
  // To the end of what is written down: the text of code that lies in no file can be read with the GIL alone.
  std::optional<PythonSection> section;
  if (searched != nullptr) section.emplace();
  if (raised && !no_memory && searched != nullptr) {
    const void* innermost = details.innermost != nullptr ? details.innermost : current_frame(searched);
    examine(innermost, is_engine_thread(state, innermost) ? searched : nullptr, details.site, operands, facts);
  }
  if (raised && !no_memory) name_temporaries(operands.records(), details.site);
  trace::MeetingPayload* written = write_meeting(state, details, operands);
  if (written != nullptr && raised && !no_memory) record_facts(*written, facts);
  section.reset();
  if (written == nullptr) return {};
  if (no_memory) {
    record_live_memory(*written, runtime.recorder->string(details.message), searched, state.backward_depth != 0);
  }
  meeting_table.add(key, state.epoch, written);
  if (details.traced != nullptr) raised_in_compiler = written;
  const bool loud = raised && silence == Silence::none && !has_suppression(*written);
  const bool may_be_tried = trace::refused_by_numpy(runtime.recorder->string(details.message));
  if (loud && !may_be_tried) say_first_finding(*written, operands.records());
  if (loud && may_be_tried) unsaid = written;
  return {written, loud};
}

}  // namespace

bool is_in_python_bindings(const void* caller) noexcept {
  return caller >= runtime.python_bindings_begin.load() && caller < runtime.python_bindings_end.load();
}

// The functions of torch's Python bindings give up the GIL around an operator and take it again when it returns, or
// throws, with nothing in between: taking it here waits for no more than they would.
bool may_take_gil(const ThreadState& state, const void* caller) noexcept {
  return state.outer.python != nullptr && is_in_python_bindings(caller) && interpreter_lives();
}

void record_allowed(ThreadState& state, trace::OperatorId op, const ArgumentsView& arguments,
                    const void* caller) noexcept {
  OperandList operands = list_operands(state, op, arguments);
  record_allowed(state, op, operands, caller);
}

void record_allowed(ThreadState& state, trace::OperatorId op, OperandList& operands, const void* caller) noexcept {
  const Busy busy(state);
  if (operands.simulated_by_python()) return;
  Details details;
  details.op = op;
  details.site = state.outer.site.id;
  if (state.backward_depth != 0) details.fallback = backward_call_site();
  record(state, details, operands, python_to_search(state, caller));
}

void record_raised(ThreadState& state, trace::OperatorId op, const ArgumentsView& arguments,
                   const void* caller) noexcept {
  if (!has_device_error(state, caller)) return;
  OperandList operands = list_operands(state, op, arguments);
  record_raised(state, op, operands, caller);
}

void record_raised(ThreadState& state, trace::OperatorId op, OperandList& operands, const void* caller) noexcept {
  if (!has_device_error(state, caller) || came_with_boxed_call(state, operands)) return;
  const Busy busy(state);
  const trace::StringId message = state.device_error;
  state.device_error = trace::StringId::none;
  // The operator that the program called is still to fail, of the same, and knows the program's tensors.
  if (state.depth > 1 && state.outer.python != nullptr && is_in_traced_call(current_frame(state.outer.python))) return;
  if (!state.device_error_certain && (!operands.mixed() || operands.simulated_by_python())) return;
  add_device_of_group(runtime.recorder->string(message), operands);
  Details details;
  details.flags = raised_flags(operands);
  details.message = message;
  details.op = op;
  details.site = state.outer.site.id;
  if (state.backward_depth != 0) details.fallback = backward_call_site();
  state.raised_depth = state.depth;
  const void* searched = python_to_search(state, caller);
  std::optional<TracedFailure> traced;
  if (searched != nullptr && operands.simulated_by_python()) tell_as_run(state, details, operands, searched, traced);
  expect_handling(state, record(state, details, operands, searched));
}

void note_error(std::string_view message) noexcept {
  note_not_simulated(message);
  ThreadState& state = thread_state();
  const DeviceComplaint complaint = takes_state_from_device(state) ? DeviceComplaint::certain : complaint_of(message);
  if (complaint == DeviceComplaint::none || state.busy) return;
  if (state.depth != 0) return keep_error(state, message);
  if (complaint != DeviceComplaint::certain) return;
  if (state.epoch != runtime.epoch_page->epoch.load(std::memory_order_relaxed)) start_thread(state);
  const void* thread = python_thread(state);
  if (state.unhandled != nullptr && std::uncaught_exceptions() == 0) {
    const bool quoted = contains(message, runtime.recorder->string(state.unhandled->message));
    if (quoted && compiled_by != KnownFrame()) return;  // torch.compile raises it again
    if (std::current_exception() == nullptr) {
      if (thread != nullptr) notice_handled(state, thread);
    } else if (quoted) {
      return;  // an error that quotes the one that is being handled, such as TorchScript's
    }
  }
  const Busy busy(state);
  Details details;
  details.flags = trace::kRaised | trace::kNoOperands;
  details.message = intern_message(message);
  details.op = running_node(state);
  if (thread != nullptr) details.site = call_site(state.caches, current_frame(thread), true).id;
  if (state.backward_depth != 0) details.fallback = backward_call_site();
  OperandList operands(details.op);
  add_checked_gradients(state, operands);
  add_generator_state(state, operands);
  const void* searched = python_with_gil(thread);
  if (searched != nullptr && operands.records().empty()) {
    const PythonSection section;
    add_python_operands(state, message, searched, operands);
  }
  if (!operands.records().empty()) details.flags &= ~unsigned{trace::kNoOperands};
  expect_handling(state, record(state, details, operands, searched));
}

void record_left(ThreadState& state, std::string_view message, const void* innermost, OperandList& operands) noexcept {
  const DeviceComplaint complaint = device_complaint(message);
  if (complaint == DeviceComplaint::none || (complaint == DeviceComplaint::possible && !operands.mixed())) return;
  const auto known = [&] { return runtime.recorder->string(state.unhandled->message); };
  if (state.unhandled != nullptr && (contains(message, known()) || contains(known(), message))) return;
  Details details;
  details.flags = raised_flags(operands);
  details.message = runtime.recorder->intern_string(message);
  details.site = call_site(state.caches, innermost, true).id;
  details.innermost = innermost;
  const Recorded recorded = record(state, details, operands, python_thread(state));
  if (recorded.loud) halt_unless_handled(recorded.meeting, false);
  watch_exit();
}

void note_uncaught(ThreadState& state) noexcept {
  if (state.busy || state.depth == 0 || state.device_error == trace::StringId::none || !state.device_error_certain)
    return;
  const Busy busy(state);
  Details details;
  details.flags = trace::kRaised | trace::kNoOperands;
  details.message = state.device_error;
  details.op = running_operator(state);
  details.site = state.outer.site.id;
  OperandList none(details.op);
  if (record(state, details, none, nullptr).loud) halt_at_finding();
}

void notice_handled(ThreadState& state) noexcept {
  if (state.outer.python != nullptr) notice_handled(state, state.outer.python);
}

}  // namespace devsan::hooks
