// `layer.move("cpu")`, and `layer.move(self.device)` in another method of the same class: what the object sends away it
// brings back itself, there.
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/call_frames.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/history_source.h"
#include "hooks/inprocess/source/file_lines.h"
#include "hooks/inprocess/source/python_text.h"
#include "trace/function_names.h"

namespace devsan::hooks {

namespace {

// "('cpu')" of `self.layers[k].move('cpu')`; empty where a text does not call the method.
std::string arguments_of(const std::string& statement, const std::string& method) {
  const std::string call = "." + method + "(";
  const std::size_t begin = statement.find(call);
  if (begin == statement.npos) return "";
  const std::size_t open = begin + call.size() - 1;
  const std::size_t closing = closing_of(statement, open);
  return closing == statement.npos ? "" : statement.substr(open, closing + 1 - open);
}

bool says_host(std::string_view arguments) {
  return arguments.find("'cpu'") != arguments.npos || arguments.find("\"cpu\"") != arguments.npos;
}

// The only line of the class around `sent` that calls the method with something else; 0 without one.
int other_call(const SourceLines& lines, int sent, const std::string& method) {
  const int type = enclosing_line(lines, enclosing_line(lines, sent, "def "), "class ");
  if (type == 0) return 0;
  const int end = end_of_block(lines, type + 1, type);
  int found = 0;
  for (int k = type + 1; k <= end; ++k) {
    if (k == sent || is_blank(lines[k]) || !mentions_name(lines[k], method)) continue;
    const std::string arguments = arguments_of(statement_at(lines, k), method);
    if (arguments.empty() || says_host(arguments)) continue;
    if (found != 0) return 0;
    found = k;
  }
  return found;
}

// The `if` that a line stands in, as a statement of its block, and that has no other branch; 0 without one.
int condition_of(const SourceLines& lines, int line) {
  const int head = condition_around(lines, line);
  if (head == 0) return 0;
  const int end = end_of_block(lines, head + 1, head);
  for (int k = head + 1; k <= end; ++k) {
    if (!is_blank(lines[k]) && indentation(lines[k]) < indentation(lines[line])) return 0;
  }
  const bool other = end < lines.count() && indentation(lines[end + 1]) == indentation(lines[head]) &&
                     (trimmed(lines[end + 1]).starts_with("else") || trimmed(lines[end + 1]).starts_with("elif"));
  return other ? 0 : head;
}

}  // namespace

void find_brought_back(const trace::OperandRecord& operand, std::size_t index, EvidenceList& found) {
  visit_history(operand, [&](const trace::LineageNode& node, const trace::Position& made, const SourceLines&) {
    if (node.how != trace::How::moved) return true;
    std::vector<trace::Position> frames = call_frames(made, node.calls);
    while (frames.size() > 1 && is_comprehension(frames.front())) frames.erase(frames.begin());
    const std::string_view function = trace::function_around(runtime.recorder->string(made.function));
    const std::string method(trace::own_name(function));
    if (frames.size() < 2 || function == method) return false;
    const trace::Position& sent = frames[1];
    FileLines files;
    const SourceLines& lines = files.of(sent.file);
    if (!says_host(arguments_of(statement_at(lines, sent.line), method))) return false;
    if (const int back = other_call(lines, sent.line, method)) {
      found.add(trace::EvidenceKind::brought_back_at, index,
                position_at(sent.file, back, qualified_function(lines, back)), method);
      if (const int condition = condition_of(lines, back)) {
        found.add(trace::EvidenceKind::brought_back_if_at, index,
                  position_at(sent.file, condition, qualified_function(lines, back)), "");
      }
    }
    return false;
  });
}

}  // namespace devsan::hooks
