// An array of NumPy that a line computes with together with a tensor, `td * weight`: the array asks the tensor for an
// array of its own. Where the tensor is part of a graph that is to be differentiated, the array is the one that is
// wrong.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/waiting_calls.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/snapshot/named_objects.h"
#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

// What stands in an expression outside of all brackets, as "td" and "self.weights" of `td * self.weights`. What is
// called or indexed there is left out.
std::vector<std::string_view> paths_in(std::string_view expression) {
  std::vector<std::string_view> found;
  const auto belongs = [](char c) { return trace::is_word(c) || c == '.'; };
  int depth = 0;
  for (std::size_t k = 0; k < expression.size(); ++k) {
    const char c = expression[k];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (!belongs(c) || (k > 0 && (belongs(expression[k - 1]) || expression[k - 1] == ')'))) continue;
    const auto end = std::find_if_not(expression.begin() + std::ptrdiff_t(k), expression.end(), belongs);
    const bool goes_on = end != expression.end() && (*end == '(' || *end == '[');
    if (depth == 0 && !goes_on) found.emplace_back(expression.begin() + std::ptrdiff_t(k), end);
  }
  return found;
}

// Of its numbers, which are arrays to the operators of Python, too.
bool is_of_numpy(const void* object) {
  return type_name(object).starts_with("numpy.");
}

// The only array among what an expression computes with.
std::string only_array(const void* frame, std::string_view expression) {
  std::string found;
  for (const std::string_view path : paths_in(expression)) {
    const void* object = object_behind(frame, path);
    if (object == nullptr || !is_of_numpy(object) || path == found) continue;
    if (!found.empty()) return "";
    found = path;
  }
  return found;
}

}  // namespace

void find_array_beside(const Inquiry& inquiry, std::size_t operand) {
  const void* frame = program_frame(inquiry.innermost);
  const bool differentiated = (inquiry.operands[operand].flags & trace::kRequiresGrad) != 0;
  if (frame == nullptr || !differentiated || !inquiry.is_for_numpy()) return;
  const void* code = frame_code(frame);
  const trace::Position at = position_of(code, frame_instruction(frame, code), Columns::of_all);
  SourceFiles files;
  const std::string expression = code_text(SourceLines(files.whole(at.file)), at);
  if (call_text(expression)) return;
  const std::string array = only_array(frame, expression);
  if (array.empty()) return;
  const auto binding = binding_of(inquiry, operand, frame, array);
  inquiry.found.add(trace::EvidenceKind::array_beside_at, operand, binding ? binding->at : at, array);
}

}  // namespace devsan::hooks
