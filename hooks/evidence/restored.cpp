// An object that says the device on which something was made, and came out of a file: `self.replay =
// pickle.loads(blob)`. It says the device of whoever saved it, and not the one that its constructor was told here.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/evidence/call_frames.h"
#include "hooks/evidence/evidence.h"
#include "hooks/evidence/history_source.h"
#include "hooks/origins/sites.h"
#include "hooks/process/runtime.h"
#include "hooks/python/byte_code.h"
#include "hooks/python/code_api.h"
#include "hooks/python/python_frames.h"
#include "hooks/source/python_text.h"
#include "hooks/source/source_files.h"
#include "trace/function_names.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

constexpr std::size_t kMaxCalls = 6;

// `pickle.load(file)`, `torch.load(path)`, `joblib.load(path)`; no `load_state_dict()`.
bool loads_object(std::string_view value) {
  return call_in(value, "load") != value.npos || call_in(value, "loads") != value.npos;
}

// "replay" of `self.replay.sample(4)` and of `replay.sample(4)`, with "sample"; empty where another thing is called.
std::string receiver_of(std::string_view statement, std::string_view method) {
  const std::size_t at = call_in(statement, method);
  if (at == statement.npos || at < 2 || statement[at - 1] != '.') return "";
  std::size_t begin = at - 1;
  while (begin > 0 && trace::is_word(statement[begin - 1])) --begin;
  const std::string_view name = statement.substr(begin, at - 1 - begin);
  return is_identifier(name) && name != "self" && name != "super" ? std::string(name) : std::string();
}

// The only line of the program that gives an attribute or a variable of this name what it has loaded.
std::optional<trace::Position> only_restoring(const Inquiry& inquiry, const std::string& name) {
  std::optional<trace::Position> found;
  SourceFiles files;
  for (const void* code : inquiry.own_code.code()) {
    if (!mentions_text(code, name) && !mentions_text(code, "load") && !mentions_text(code, "loads")) continue;
    const ByteCode byte_code(code);
    for (const Instruction& one : byte_code.instructions()) {
      const bool stores = one.operation == Operation::store_attribute || one.operation == Operation::store_variable ||
                          one.operation == Operation::store_global || one.operation == Operation::store_cell;
      if (!stores || !is_name(one.operand, name)) continue;
      const trace::Position at = position_of(code, one.offset);
      const std::string statement = statement_at(SourceLines(files.whole(at.file)), at.line);
      const std::size_t equals = statement.find(" = ");
      if (equals == statement.npos || !loads_object(std::string_view(statement).substr(equals))) continue;
      if (found && !same_line(*found, at)) return std::nullopt;
      found = at;
    }
  }
  return found;
}

// The call, of those that led to a step, by which an object's method was entered whose own attribute said the device.
std::string object_asked(const trace::Position& made, std::uint32_t calls) {
  const std::vector<trace::Position> frames = call_frames(made, calls);
  SourceFiles files;
  for (std::size_t k = 1; k < frames.size() && k <= kMaxCalls; ++k) {
    const std::string_view function = trace::function_around(runtime.recorder->string(frames[k - 1].function));
    const std::string statement = statement_at(SourceLines(files.whole(frames[k].file)), frames[k].line);
    std::string receiver = receiver_of(statement, function.substr(function.rfind('.') + 1));
    if (!receiver.empty()) return receiver;
  }
  return "";
}

}  // namespace

void find_restored(const Inquiry& inquiry, std::size_t operand) {
  visit_history(inquiry.operands[operand],
                [&](const trace::LineageNode& node, const trace::Position& made, const SourceLines& lines) {
                  if (node.how == trace::How::derived) return true;
                  const std::string device = device_expression(code_text(lines, made));
                  if (!device.starts_with("self.")) return false;
                  const std::string object = object_asked(made, node.calls);
                  const auto at = object.empty() ? std::nullopt : only_restoring(inquiry, object);
                  if (at)
                    inquiry.found.add(trace::EvidenceKind::restored_at, operand, *at, object + "." + device.substr(5));
                  return false;
                });
}

}  // namespace devsan::hooks
