#include "hooks/evidence/device_source.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/evidence/call_frames.h"
#include "hooks/evidence/evidence.h"
#include "hooks/names/named_objects.h"
#include "hooks/origins/lineage.h"
#include "hooks/origins/lineage_nodes.h"
#include "hooks/process/large_page.h"
#include "hooks/process/runtime.h"
#include "hooks/python/waiting_calls.h"
#include "hooks/source/file_lines.h"
#include "hooks/source/python_calls.h"
#include "hooks/source/python_text.h"

namespace devsan::hooks {

namespace {

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
  while (frame != nullptr && !same_line(waits_at(frame), call)) frame = caller_of(frame);
  return frame;
}

// What the caller of a function that has returned gave for what `path` begins with; empty where that is not an argument
// as it was given.
std::string path_in_caller(FileLines& files, const trace::Position& in, const trace::Position& call,
                           const std::string& path) {
  const SourceLines& lines = files.of(in.file);
  const int definition = enclosing_line(lines, in.line, "def ");
  const std::size_t end = end_of_name(path, 0);
  const std::string name = path.substr(0, end);
  if (definition == 0 || !assignments_of(lines, name, definition + 1, end_of_function(lines, in.line) + 1).empty()) {
    return "";
  }
  const std::string signature = statement_at(lines, definition);
  const auto parameter = parameter_of(signature, name);
  const auto given_by = parameter ? call_text(code_text(files.of(call.file), call)) : std::nullopt;
  if (!given_by) return "";
  const Given given = given_for(*parameter, *given_by, is_bound(signature));
  return given.by == Given::By::value ? given.text + path.substr(end) : std::string();
}

// The object that `path` meant where a value was made, if a function that it can be reached from still runs.
void* object_in_calls(const void* innermost, const trace::LineageNode& made, std::string path) {
  const trace::Position at = runtime.recorder->site(made.site).user;
  const std::vector<trace::Position> calls = call_frames(at, made.calls);
  FileLines files;
  for (std::size_t k = 0; k < calls.size() && !path.empty(); ++k) {
    const void* frame = k == 0 ? running_frame(program_frame(innermost), at) : waiting_frame(innermost, calls[k]);
    if (frame != nullptr) return object_behind(frame, path);
    if (k + 1 < calls.size()) path = path_in_caller(files, calls[k], calls[k + 1], path);
  }
  return nullptr;
}

// The history of the tensor that a value has its device from.
trace::LineageId history_of_source(const ObjectSearch& search, const void* innermost, const trace::LineageNode& made) {
  const c10::TensorImpl* tensor = device_source(search, innermost, made);
  return tensor != nullptr ? origin_table().find(storage_of(tensor)) : trace::LineageId::none;
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

std::string device_owner(std::string_view call) {
  constexpr std::string_view kBefore = "device=";
  constexpr std::string_view kAfter = ".device";
  const auto parts = call_text(call);
  if (!parts) return "";
  for (const std::string& argument : parts->arguments) {
    if (!argument.starts_with(kBefore) || !argument.ends_with(kAfter)) continue;
    return argument.substr(kBefore.size(), argument.size() - kBefore.size() - kAfter.size());
  }
  return "";
}

DeviceOwner asked_for_device(const ObjectSearch& search, const void* innermost, const trace::LineageNode& made) {
  const trace::Position at = runtime.recorder->site(made.site).user;
  FileLines files;
  std::string path = device_owner(code_text(files.of(at.file), at));
  const void* object = path.empty() ? nullptr : object_in_calls(innermost, made, path);
  const c10::TensorImpl* tensor = object != nullptr ? search.tensor_at(object) : nullptr;
  const bool known = tensor != nullptr && storage_of(tensor) != nullptr;
  return known ? DeviceOwner{object, tensor, std::move(path)} : DeviceOwner{};
}

const c10::TensorImpl* device_source(const ObjectSearch& search, const void* innermost,
                                     const trace::LineageNode& made) {
  const DeviceOwner owner = asked_for_device(search, innermost, made);
  // A variable may mean another tensor by now, and a weight has causes of its own.
  const bool there = owner.tensor != nullptr && device_slot_of(owner.tensor) == made.device;
  return there && search.owner(owner.object) == nullptr ? owner.tensor : nullptr;
}

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
