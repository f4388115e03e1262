// Where the device came from that an operand was made on, or moved to, where the program names no literal:
// `device=self.device`, `.to(device)`, `zeros_like(x)`. Read from the source alone, so that it serves operators of a
// backward, too.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/device_source.h"
#include "hooks/inprocess/evidence/device_trail.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/history_source.h"
#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_results.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

// A `.to()` that is called on what a call returns, and does nothing where that is on the device already.
std::string move_behind(const SourceLines& lines, const trace::Position& at) {
  const std::string_view line = lines[at.end_line];
  const auto end = static_cast<std::size_t>(std::max<int>(at.end_column, 0));
  const std::string_view rest = at.column >= 0 && end <= line.size() ? line.substr(end) : std::string_view();
  if (!rest.starts_with(".to(")) return "";
  return std::string(rest.substr(0, std::min(rest.size(), rest.find(')')) + 1));
}

// What gives the device in one step of a history.
std::string device_given(const SourceLines& lines, const trace::LineageNode& node, const trace::Position& at) {
  const std::string behind = device_expression(move_behind(lines, at));
  if (!behind.empty()) return behind;
  const std::string call = code_text(lines, at);
  const std::string_view op = runtime.recorder->string(runtime.recorder->operator_name(node.op));
  const bool decides = node.how != trace::How::derived || op.find("_like") != op.npos || !device_owner(call).empty();
  return decides ? device_expression(call) : "";
}

// The only `return` of a function; the first line of its body where it has none, or several.
int return_of(const SourceLines& lines, int definition) {
  const std::vector<int> returns = returns_of(lines, definition);
  return returns.size() == 1 ? returns.front() : definition + 1;
}

// `device=self.device`, where that is no attribute but a property: what it gives is computed whenever it is asked.
void find_property(const SourceLines& lines, const trace::Position& made, const std::string& expression,
                   std::size_t index, EvidenceList& found) {
  constexpr std::string_view kSelf = "self.";
  const int type = enclosing_line(lines, made.line, "class ");
  if (!expression.starts_with(kSelf) || type == 0) return;
  const int decorator = decorator_of(lines, type, std::string_view(expression).substr(kSelf.size()));
  if (trimmed(lines[decorator]) != "@property") return;
  const int body = return_of(lines, decorator + 1);
  found.add(trace::EvidenceKind::device_property_at, index,
            position_at(made.file, body, qualified_function(lines, body)), expression);
}

// "labels.device", which the function takes for its argument `name` where that is None; empty where it does not.
std::string device_without_argument(const SourceLines& lines, int definition, const std::string& name) {
  constexpr std::string_view kDevice = ".device";
  const std::string signature = statement_at(lines, definition);
  const int end = end_of_block(lines, definition + 1, definition) + 1;
  for (const int line : assignments_of(lines, name, definition, end)) {
    const std::string value = assigned_to(statement_at(lines, line), name).value_or("");
    const bool asks = value.find(" None") != value.npos || value.find(" or ") != value.npos ||
                      (mentions_name(lines[line - 1], name) && trimmed(lines[line - 1]).starts_with("if "));
    const std::size_t device = value.find(kDevice);
    if (!asks || device == value.npos) continue;
    std::size_t begin = device;
    while (begin > 0 && trace::is_word(value[begin - 1])) --begin;
    const std::string argument = value.substr(begin, device - begin);
    if (argument != "self" && parameter_of(signature, argument)) return argument + std::string(kDevice);
  }
  return "";
}

// The line of a signature that has the default which gave a device.
void find_default(const DeviceTrail::Stop& stop, std::size_t index, EvidenceList& found) {
  if (stop.default_line == 0) return;
  SourceFiles files;
  const SourceLines lines(files.whole(stop.default_file));
  const std::string name = stop.text.substr(0, stop.text.find('='));
  int line = stop.default_line;
  while (goes_on_to(lines, stop.default_line, line + 1) && !has_word(lines[line], name)) ++line;
  found.add(trace::EvidenceKind::default_stands_at, index,
            position_at(stop.default_file, line, qualified_function(lines, stop.default_line + 1)),
            device_without_argument(lines, stop.default_line, name));
}

// `device = embeds.device`, above `device=device` in the same function.
void find_device_taken(const DeviceTrail::Stop& stop, const trace::Position& made, std::size_t index,
                       EvidenceList& found) {
  if (same_function(stop.at, made)) {
    found.add(trace::EvidenceKind::device_taken_at, index, stop.at, stop.object + ".device");
  }
}

}  // namespace

void find_device_source(const trace::OperandRecord& operand, std::size_t index, EvidenceList& found,
                        const ComputesDevice& computes_device) {
  visit_history(operand, [&](const trace::LineageNode& node, const trace::Position& made, const SourceLines& lines) {
    std::string expression = device_given(lines, node, made);
    const std::string call = expression.empty() ? code_text(lines, made) : std::string();
    const std::string computed = device_computed_by(call);
    const std::string table = table_of_device(call);
    if (expression.empty() && computed.empty() && table.empty()) return true;
    find_property(lines, made, expression, index, found);
    DeviceTrail trail(made, node.calls, runtime.recorder->string(runtime.recorder->device_name(node.device)));
    const std::vector<DeviceTrail::Stop> stops = !table.empty()      ? trail.follow_table(table)
                                                 : !computed.empty() ? trail.follow_call(computed)
                                                                     : trail.follow(expression);
    for (const DeviceTrail::Stop& stop : stops) {
      if (!stop.object.empty() && !(computes_device && computes_device(stop.at, stop.object))) {
        find_device_taken(stop, made, index, found);
        break;
      }
      found.add(trace::EvidenceKind::device_from, index, stop.at, stop.text);
      find_default(stop, index, found);
    }
    return false;
  });
}

void find_stay_source(const Copy& stay, trace::DeviceSlot device, std::size_t index, EvidenceList& found) {
  const trace::Position at = runtime.recorder->site(stay.site).user;
  SourceFiles files;
  const SourceLines lines(files.whole(at.file));
  const std::string call = code_text(lines, at);
  const std::string expression = device_expression(call);
  const std::string table = expression.empty() ? table_of_device(call) : std::string();
  find_property(lines, at, expression, index, found);
  DeviceTrail trail(at, stay.calls, runtime.recorder->string(runtime.recorder->device_name(device)));
  for (const DeviceTrail::Stop& stop : table.empty() ? trail.follow(expression) : trail.follow_table(table)) {
    if (!stop.object.empty()) break;
    found.add(trace::EvidenceKind::stay_from, index, stop.at, stop.text);
  }
}

}  // namespace devsan::hooks
