#include "hooks/inprocess/snapshot/device_source.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/provenance/lineage.h"
#include "hooks/inprocess/provenance/lineage_nodes.h"
#include "hooks/inprocess/snapshot/named_objects.h"
#include "hooks/inprocess/snapshot/program_frames.h"
#include "hooks/inprocess/source/file_lines.h"
#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_text.h"
#include "trace/function_names.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

constexpr std::string_view kDeviceKeyword = "device=";
constexpr std::array<std::string_view, 3> kMoves = {"to", "cuda", "cpu"};

bool same_line(const trace::Position& a, const trace::Position& b) noexcept {
  return a.file == b.file && a.function == b.function && a.line == b.line;
}

// `begin`, and after it the calls that led there, outwards: `calls` as trace::LineageNode has it.
std::vector<trace::Position> call_frames(const trace::Position& begin, std::uint32_t calls) {
  std::vector<trace::Position> frames{begin};
  for (trace::LineageId id{calls}; id != trace::LineageId::none && frames.size() <= trace::kMaxCalls;) {
    const trace::LineageNode call = runtime.recorder->lineage(id);
    if (call.how != trace::How::called) break;
    frames.push_back(runtime.recorder->site(call.site).user);
    id = call.parent;
  }
  return frames;
}

// Before CPython 3.12 a comprehension is a function of its own, which nobody calls by name.
bool is_comprehension(const trace::Position& at) noexcept {
  const auto function = runtime.recorder->string(at.function);
  return trace::function_around(function) != function;
}

// The end of a name and of the attributes that are asked of it: `self.rows`.
std::size_t end_of_path(std::string_view text, std::size_t begin) {
  std::size_t end = end_of_name(text, begin);
  while (end > begin && end + 1 < text.size() && text[end] == '.' && end_of_name(text, end + 1) > end + 1) {
    end = end_of_name(text, end + 1);
  }
  return end;
}

// The steps of a history since its value was made anew, on the device where it is: the newest first, that one last.
// Empty where it was moved.
std::vector<trace::LineageNode> steps_since_made(const trace::OperandRecord& operand) {
  std::vector<trace::LineageNode> steps;
  visit_steps(operand.lineage, [&](const trace::LineageNode& node) {
    if (node.device != operand.device) steps.clear();
    if (node.device != operand.device || node.how == trace::How::moved) return false;
    steps.push_back(node);
    return node.how == trace::How::derived;
  });
  const bool made = !steps.empty() && steps.back().how == trace::How::created;
  return made ? steps : std::vector<trace::LineageNode>();
}

// The frame that still waits in a call; null where that has returned.
const void* waiting_frame(const void* innermost, const trace::Position& call) {
  const void* frame = program_frame(innermost);
  while (frame != nullptr && !same_line(waits_at(frame), call)) frame = program_caller(frame);
  return frame;
}

// The frame of a function that led to the making of a value, and runs still, by the same calls; it may have gone on
// since. Null where that has returned, or where the variable has another value by now.
const void* frame_of_call(FileLines& files, const void* innermost, const std::vector<trace::Position>& calls,
                          std::size_t k, const std::string& path) {
  const void* waiting = waiting_frame(innermost, calls[k]);
  if (waiting != nullptr) return waiting;
  const void* frame = program_frame_in(program_frame(innermost), calls[k]);
  const void* caller = frame != nullptr ? program_caller(frame) : nullptr;
  const bool same_call =
      k + 1 == calls.size() ? caller == nullptr : caller != nullptr && same_line(waits_at(caller), calls[k + 1]);
  if (!same_call) return nullptr;
  const std::string name = path.substr(0, end_of_name(path, 0));
  const SourceLines& lines = files.of(calls[k].file);
  return assignments_of(lines, name, end_of_statement(lines, calls[k].line) + 1, waits_at(frame).line).empty()
             ? frame
             : nullptr;
}

// What a call was made on: "meta.mask" of `meta.mask.build()`.
std::string object_of_call(const CallText& call) {
  const std::size_t dot = call.callee.rfind('.');
  return dot != std::string::npos ? call.callee.substr(0, dot) : std::string();
}

// Of `x.rows.tril()` the tensor that it is asked of, of a function there is none.
std::string asked_of(std::string_view called) {
  constexpr std::array<std::string_view, 6> kNumbers = {"size", "numel", "dim", "item", "tolist", "__len__"};
  const std::size_t dot = called.rfind('.');
  const bool number = dot != called.npos && std::ranges::find(kNumbers, called.substr(dot + 1)) != kNumbers.end();
  return dot == called.npos || number ? std::string() : std::string(called.substr(0, dot));
}

// What an expression of operators, entries and methods is computed from, by its text: "self.rows" and "x" of
// `self.rows[:, None] == x.long()`. None of one that calls a function, which may make something anew, or that says a
// device of its own.
std::vector<std::string> paths_in(std::string_view expression) {
  std::vector<std::string> paths;
  if (expression.find("device") != expression.npos || trace::calls_method(expression, kMoves)) return paths;
  for (std::size_t at = 0; at < expression.size();) {
    if (expression[at] == '\'' || expression[at] == '"') return {};
    const std::size_t end = end_of_path(expression, at);
    const std::string_view path = expression.substr(at, end - at);
    if (path.empty()) {
      ++at;
      continue;
    }
    const bool called = expression.substr(end).starts_with('(');
    const bool of_result = at > 0 && expression[at - 1] == '.';
    if (called && !of_result && (path.find('.') == path.npos || path.starts_with("torch."))) return {};
    std::string tensor = called ? asked_of(path) : std::string(path);
    if (!of_result && !tensor.empty() && std::ranges::find(paths, tensor) == paths.end())
      paths.push_back(std::move(tensor));
    at = end;
  }
  return paths;
}

// What the caller of a function that has returned knows a path by, which leads to a tensor in that function, or to what
// it was computed from; none where that cannot be told.
std::vector<std::string> paths_in_caller(FileLines& files, const trace::Position& in, const trace::Position& call,
                                         const std::string& path) {
  const SourceLines& lines = files.of(in.file);
  const int definition = enclosing_line(lines, in.line, "def ");
  const std::size_t end = end_of_name(path, 0);
  const std::string name = path.substr(0, end);
  if (definition == 0) return {};
  const std::vector<int> bound = assignments_of(lines, name, definition + 1, end_of_function(lines, in.line) + 1);
  if (bound.size() == 1 && bound.front() < in.line && end == path.size()) {
    std::vector<std::string> paths;
    trace::Position above = in;
    above.line = bound.front();
    for (const std::string& one : paths_in(assigned_to(statement_at(lines, bound.front()), name).value_or(""))) {
      if (one != name) std::ranges::copy(paths_in_caller(files, above, call, one), std::back_inserter(paths));
    }
    return paths;
  }
  if (!bound.empty()) return {};
  const std::string signature = statement_at(files.of(in.file), definition);
  const auto parameter = parameter_of(signature, name);
  const auto given_by = parameter ? call_text(code_text(files.of(call.file), call)) : std::nullopt;
  if (!given_by) return {};
  const bool is_self = is_bound(signature) && parameter->index == 0;
  const Given given = is_self ? Given{} : given_for(*parameter, *given_by, is_bound(signature));
  const std::string there = is_self ? object_of_call(*given_by) : given.text;
  if (there.empty() || (!is_self && given.by != Given::By::value)) return {};
  return {there + path.substr(end)};
}

// The tensor that a call asked for its device, as `path`: what that means now.
struct DeviceOwner {
  const void* object = nullptr;  // null where it cannot be reached
  const c10::TensorImpl* tensor = nullptr;
  std::string path;
};

// The tensor that one of some paths means in a frame; a null object where none does.
DeviceOwner tensor_behind(const ObjectSearch& search, const void* frame, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const void* object = object_behind(frame, path);
    const c10::TensorImpl* tensor = object != nullptr ? search.tensor_at(object) : nullptr;
    if (tensor != nullptr && storage_of(tensor) != nullptr) return {object, tensor, path};
  }
  return {};
}

// The tensor that a path meant where a value was made, if a function that it can be reached from still runs.
DeviceOwner owner_in_calls(const ObjectSearch& search, const void* innermost, const trace::LineageNode& made,
                           std::string path) {
  const std::vector<trace::Position> calls = call_frames(runtime.recorder->site(made.site).user, made.calls);
  std::vector<std::string> paths{std::move(path)};
  FileLines files;
  bool in_function = true;  // its comprehensions are functions, too, and it may have gone on since
  for (std::size_t k = 0; k < calls.size() && !paths.empty(); ++k) {
    const void* frame = in_function ? program_frame_in(program_frame(innermost), calls[k])
                                    : frame_of_call(files, innermost, calls, k, paths.front());
    const DeviceOwner owner = frame != nullptr ? tensor_behind(search, frame, paths) : DeviceOwner{};
    if (owner.object != nullptr) return owner;
    if (in_function && is_comprehension(calls[k])) continue;
    in_function = false;
    if (frame != nullptr || k + 1 == calls.size()) return {};
    std::vector<std::string> outside;
    for (const std::string& one : paths) {
      std::ranges::copy(paths_in_caller(files, calls[k], calls[k + 1], one), std::back_inserter(outside));
    }
    paths = std::move(outside);
  }
  return {};
}

// "x" of "x.device"; empty for any other expression.
std::string owner_of_device(std::string_view expression) {
  constexpr std::string_view kAfter = ".device";
  if (!expression.ends_with(kAfter)) return "";
  return std::string(expression.substr(0, expression.size() - kAfter.size()));
}

// "x.device" of a call with `device=x.device`; empty for other calls.
std::string device_argument(std::string_view call) {
  const auto parts = call_text(call);
  if (!parts) return "";
  const auto given =
      std::ranges::find_if(parts->arguments, [](const auto& one) { return one.starts_with(kDeviceKeyword); });
  return given != parts->arguments.end() ? given->substr(kDeviceKeyword.size()) : std::string();
}

// "x" of such a call, also where a variable has that device: `device=d` below `d = x.device`.
std::string owner_at(const SourceLines& lines, const trace::Position& at) {
  const std::string device = device_argument(code_text(lines, at));
  return owner_of_device(is_identifier(device) ? only_value_above(lines, at.line, device) : device);
}

// Of the call that made the value of a step; a null object where it says no device so.
DeviceOwner asked_for_device(const ObjectSearch& search, const void* innermost, const trace::LineageNode& made) {
  const trace::Position at = runtime.recorder->site(made.site).user;
  FileLines files;
  const std::string path = owner_at(files.of(at.file), at);
  return path.empty() ? DeviceOwner{} : owner_in_calls(search, innermost, made, path);
}

// The tensor that the value which a step made has its device from; null where it cannot be reached, or is a weight.
const c10::TensorImpl* device_source(const ObjectSearch& search, const void* innermost,
                                     const trace::LineageNode& made) {
  const DeviceOwner owner = asked_for_device(search, innermost, made);
  // A variable may mean another tensor by now, and a weight has causes of its own.
  const bool there = owner.tensor != nullptr && device_slot_of(owner.tensor) == made.device;
  return there && search.owner(owner.object) == nullptr ? owner.tensor : nullptr;
}

// The history of the tensor that a value has its device from.
trace::LineageId history_of_source(const ObjectSearch& search, const void* innermost, const trace::LineageNode& made) {
  const c10::TensorImpl* tensor = device_source(search, innermost, made);
  return tensor != nullptr ? tensor_history(tensor) : trace::LineageId::none;
}

bool leads_to(trace::LineageId history, trace::SiteId site) {
  bool found = false;
  visit_steps(history, [&](const trace::LineageNode& node) {
    found = node.site == site;
    return !found;
  });
  return found;
}

trace::LineageId put_on(trace::LineageId parent, const trace::LineageNode& step) {
  return lineage_id(nullptr, node_words(parent, step.site, step.op, step.device, trace::How::derived, step.calls));
}

}  // namespace

void follow_device_sources(const ObjectSearch& search, const void* innermost,
                           std::span<trace::OperandRecord> operands) {
  for (trace::OperandRecord& operand : operands) {
    const std::vector<trace::LineageNode> steps = steps_since_made(operand);
    if (steps.empty()) continue;
    trace::LineageId history = history_of_source(search, innermost, steps.back());
    if (history == trace::LineageId::none || leads_to(history, steps.back().site)) continue;
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) history = put_on(history, *step);
    operand.lineage = history;
  }
}

}  // namespace devsan::hooks
