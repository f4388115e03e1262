#include "hooks/inprocess/snapshot/traced_history.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "hooks/inprocess/bridge/tensor_objects.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/device_slots.h"
#include "hooks/inprocess/provenance/lineage.h"
#include "hooks/inprocess/provenance/lineage_nodes.h"
#include "hooks/inprocess/snapshot/object_members.h"
#include "hooks/inprocess/snapshot/traced_values.h"
#include "hooks/inprocess/source/code_names.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"

namespace devsan::hooks {

namespace {

constexpr std::ptrdiff_t kMethodDefinition = 16;  // PyCFunctionObject::m_ml, which begins with its name
constexpr std::size_t kMaxTraceback = 16384;
constexpr int kMaxSteps = trace::kMaxLineageDepth;

// `  File "net.py", line 12, in forward`, and what the next two lines say of the columns.
struct Entry {
  std::string_view file;
  std::string_view function;
  int line = 0;
  std::string_view source;  // without its indentation
  std::size_t begin = 0;    // the column in it where the expression begins
};

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

bool are_marks(std::string_view line) {
  return line.find_first_not_of(" ~^") == line.npos && line.find_first_of("~^") != line.npos;
}

// An expression that is the whole statement has no marks, and in Python 3.13 and later neither has a call that is all
// that the statement assigns, or returns. Before 3.11 nothing has marks.
std::size_t begin_without_marks(std::string_view source) {
  constexpr std::string_view kReturn = "return ";
  std::string_view value = assigned_text(source);
  if (value.starts_with(kReturn)) value = trimmed(value.substr(kReturn.size()));
  return static_cast<std::size_t>(value.data() - source.data());
}

bool read_entry(std::string_view& text, Entry& entry) {
  constexpr std::string_view kFile = "  File \"";
  constexpr std::string_view kLine = "\", line ";
  constexpr std::string_view kFunction = ", in ";
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const std::size_t number = line.find(kLine);
    const std::size_t function = line.find(kFunction, std::min(number, line.size()));
    if (!line.starts_with(kFile) || number == line.npos || function == line.npos) continue;
    entry = {};
    entry.file = line.substr(kFile.size(), number - kFile.size());
    entry.function = line.substr(function + kFunction.size());
    const char* digits = line.data() + number + kLine.size();
    std::from_chars(digits, line.data() + function, entry.line);
    std::string_view rest = text;
    const std::string_view source = take_line(rest);
    if (!source.starts_with("    ")) return true;
    entry.source = source.substr(4);
    entry.begin = begin_without_marks(entry.source);
    if (const std::string_view marks = take_line(rest); are_marks(marks)) {
      entry.begin = std::max<std::size_t>(marks.find_first_of("~^"), 4) - 4;
    }
    return true;
  }
  return false;
}

// Dynamo knows where an expression begins, and of its end, that it is the line's. That of a call shows in the text.
void add_columns(const Entry& entry, std::string_view line, std::string_view called, trace::Position& position) {
  const std::size_t indentation = std::min(line.find_first_not_of(" \t"), line.size());
  if (entry.source.empty() || line.substr(indentation, entry.source.size()) != entry.source) return;
  const std::size_t begin = indentation + entry.begin;
  const std::size_t call = line.find(std::string(called) + "(", begin);
  const std::size_t closing = call != line.npos ? closing_of(line, call + called.size()) : line.npos;
  if (called.empty() || closing == line.npos) return;
  position.column = static_cast<int>(begin);
  position.end_column = static_cast<int>(closing + 1);
}

// The functions that are being read have their qualified names, for the others the source tells.
trace::StringId function_of(const Entry& entry, const trace::Position& at, std::span<const TracedFunction> functions,
                            SourceFiles& files) {
  for (const TracedFunction& one : functions) {
    const void* name = field<const void*>(one.code, code_members.name);
    if (is_name(name, entry.function) && file_of(one.code) == at.file) return qualified_name(one.code);
  }
  const std::string function = qualified_function(SourceLines(files.whole(at.file)), at.line);
  return runtime.recorder->intern_string(function.empty() ? entry.function : function);
}

trace::Position position_of(const Entry& entry, std::string_view called, std::span<const TracedFunction> functions) {
  SourceFiles files;
  trace::Position position{};
  position.file = file_named(entry.file);
  position.line = position.end_line = entry.line;
  position.column = position.end_column = -1;
  position.function = function_of(entry, position, functions, files);
  add_columns(entry, files.line(position.file, entry.line), called, position);
  return position;
}

// The innermost place outside torch in the text that dynamo keeps with a node, as traceback.format_list() writes it.
// Without a file where there is none.
trace::Position position_in_text(std::string_view traceback, std::string_view called,
                                 std::span<const TracedFunction> functions) {
  Entry found;
  for (Entry entry; read_entry(traceback, entry);) {
    if (entry.file.find("/torch/") == entry.file.npos) found = entry;
  }
  return found.file.empty() ? trace::Position{} : position_of(found, called, functions);
}

// What the program called: `torch.mul` and `operator.mul`, functions in C; one in Python; or the method `.mul()`.
std::string called_by(const void* node) {
  const void* target = member_of(node, "target");
  if (target == nullptr) return "";
  if (is_text(target)) return text_of(target);
  if (is_builtin(target, "builtin_function_or_method")) {
    return field<const char*>(field<const void*>(target, kMethodDefinition), 0);
  }
  return is_function(target) ? text_of(field<const void*>(code_of_function(target), code_members.name)) : "";
}

trace::OperatorId operator_of(std::string_view called, trace::How how) {
  if (how == trace::How::moved) return runtime.recorder->add_operator("aten::to");
  return called.empty() ? trace::OperatorId::none : runtime.recorder->add_operator("aten::" + std::string(called));
}

// What a value comes from: a weight on its device, before others there; else the first that is elsewhere.
struct Parent {
  const void* node = nullptr;
  trace::How how = trace::How::created;
};

Parent parent_of(const void* node, DeviceKey device) {
  Parent found;
  bool weight = false;
  for (const void* input : TracedValues::inputs_of(node)) {
    const DeviceKey there = fake_device(TracedValues::fake_of(input));
    if (there == 0) continue;
    const trace::How how = there == device ? trace::How::derived : trace::How::moved;
    const bool better = how == trace::How::derived && found.how != trace::How::derived;
    const bool is_weight = is_instance_of(TracedValues::real_of_node(input), "Parameter");
    const bool preferred = how == trace::How::derived && is_weight && !weight;
    if (found.node != nullptr && !better && !preferred) continue;
    found = {input, how};
    weight = is_weight;
  }
  return found;
}

std::string traceback_of(const void* node) {
  std::string buffer(kMaxTraceback, '\0');
  return std::string(text_of(dict_entry(member_of(node, "meta"), "stack_trace"), buffer.data(), buffer.size()));
}

trace::LineageId history_of(const void* node, std::span<const TracedFunction> functions, int depth) {
  if (const void* real = TracedValues::real_of_node(node)) return tensor_history(tensor_of(real));
  const DeviceKey device = fake_device(TracedValues::fake_of(node));
  if (device == 0 || depth > kMaxSteps) return trace::LineageId::none;
  const Parent parent = parent_of(node, device);
  trace::LineageId before = trace::LineageId::none;
  if (parent.node != nullptr) before = history_of(parent.node, functions, depth + 1);
  const std::string called = called_by(node);
  trace::Site site{};
  site.innermost = site.user = position_in_text(traceback_of(node), called, functions);
  if (site.user.file == trace::StringId::none) return before;
  return lineage_id(nullptr, node_words(before, runtime.recorder->add_site(site), operator_of(called, parent.how),
                                        device_slot(device), parent.how, 0));
}

}  // namespace

trace::LineageId history_of_node(const void* node, std::span<const TracedFunction> functions) {
  return history_of(node, functions, 0);
}

}  // namespace devsan::hooks
