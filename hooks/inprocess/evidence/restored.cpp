// An object that says the device on which something was made, and came out of a file: `self.replay =
// pickle.loads(blob)`. It says the device of whoever saved it, and not the one that its constructor was told here.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/call_frames.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/history_source.h"
#include "hooks/inprocess/interpreter/byte_code.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/source/file_lines.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"
#include "trace/function_names.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

constexpr std::size_t kMaxCalls = 6;

// `pickle.load(file)`, `torch.load(path)`, `joblib.load(path)`; no `load_state_dict()`.
bool loads_object(std::string_view value) {
  return call_in(value, "load") != value.npos || call_in(value, "loads") != value.npos;
}

// Where what an expression stands for was loaded from a file: in its own line; in the one that gave its variable a
// value, as `saved` of `saved["replay"]`; or in the function of the program that it calls.
class LoadSearch {
 public:
  explicit LoadSearch(const Inquiry& inquiry) : inquiry_(inquiry) {}

  std::optional<trace::Position> find(trace::StringId file, int line, std::string_view value, int followed = 0) {
    if (loads_object(value)) return here(file, line);
    if (followed == kMaxFollowed) return std::nullopt;
    const SourceLines lines(files_.whole(file));
    value = trimmed(value);
    const std::string name = leading_name(value);
    const int definition = enclosing_line(lines, line, "def ");
    const int end = definition != 0 ? end_of_function(lines, line) : line;
    const auto assigned = name.empty() ? std::vector<int>() : assignments_of(lines, name, definition + 1, end + 1);
    if (assigned.empty()) return in_function(value, followed + 1);
    const int at = assigned.front();
    if (assigned.size() != 1 || at >= line) return std::nullopt;
    return find(file, at, *assigned_to(statement_at(lines, at), name), followed + 1);
  }

 private:
  static constexpr int kMaxFollowed = 4;
  static constexpr std::string_view kReturn = "return ";

  trace::Position here(trace::StringId file, int line) {
    const SourceLines lines(files_.whole(file));
    return position_at(file, line, qualified_function(lines, line));
  }

  // `Scaler.restore(path)`, where that has one line that returns something.
  std::optional<trace::Position> in_function(std::string_view value, int followed) {
    const std::string_view path = value.substr(0, value.find('('));
    const std::string_view name = path.substr(path.rfind('.') + 1);
    const void* code = path.size() < value.size() && is_identifier(name) ? only_function(inquiry_, name) : nullptr;
    if (code == nullptr) return std::nullopt;
    const trace::StringId file = position_of(code, 0).file;
    const SourceLines lines(files_.whole(file));
    const int found = only_line_of(lines, code_first_line(code), kReturn);
    if (found == 0) return std::nullopt;
    return find(file, found, statement_at(lines, found).substr(kReturn.size()), followed);
  }

  const Inquiry& inquiry_;
  SourceFiles files_;
};

// "replay" of `self.replay.sample(4)` and of `replay.sample(4)`, with "sample"; empty where another thing is called.
std::string receiver_of(std::string_view statement, std::string_view method) {
  const std::size_t at = call_in(statement, method);
  if (at == statement.npos || at < 2 || statement[at - 1] != '.') return "";
  std::size_t begin = at - 1;
  while (begin > 0 && trace::is_word(statement[begin - 1])) --begin;
  const std::string_view name = statement.substr(begin, at - 1 - begin);
  return is_identifier(name) && name != "self" && name != "super" ? std::string(name) : std::string();
}

// Where the value was loaded that a statement gives an attribute or a variable of this name.
std::optional<trace::Position> loaded_at(const Inquiry& inquiry, const trace::Position& at, const std::string& name) {
  FileLines files;
  const std::string statement = statement_at(files.of(at.file), at.line);
  const std::string_view targets =
      std::string_view(statement).substr(0, std::min(statement.find(" = "), statement.size()));
  const std::size_t dot = targets.find("." + name);
  std::string target = name;
  if (dot != targets.npos) {
    const std::size_t begin = trace::begin_of_path(targets, dot);
    target = std::string(targets.substr(begin, dot - begin)) + "." + name;
  }
  const auto value = assigned_to(statement, target);
  return value ? LoadSearch(inquiry).find(at.file, at.line, *value) : std::nullopt;
}

// The only line of the program that gives an attribute or a variable of this name what it has loaded.
std::optional<trace::Position> only_restoring(const Inquiry& inquiry, const std::string& name) {
  std::optional<trace::Position> found;
  for (const void* code : inquiry.own_code.code()) {
    const ByteCode byte_code(code);
    for (const Instruction& one : byte_code.instructions()) {
      const bool stores = one.operation == Operation::store_attribute || one.operation == Operation::store_variable ||
                          one.operation == Operation::store_global || one.operation == Operation::store_cell;
      if (!stores || !is_name(one.operand, name)) continue;
      const trace::Position at = position_of(code, one.offset);
      const auto loaded = loaded_at(inquiry, at, name);
      if (!loaded) continue;
      if (found && !same_line(*found, *loaded)) return std::nullopt;
      found = loaded;
    }
  }
  return found;
}

// What is called in a statement, by its name: `normalise` of `net(normalise(x))`, where an object of the program is.
std::vector<std::string> called_in(std::string_view statement) {
  std::vector<std::string> found;
  for (std::size_t open = statement.find('('); open != statement.npos; open = statement.find('(', open + 1)) {
    std::size_t begin = open;
    while (begin > 0 && trace::is_word(statement[begin - 1])) --begin;
    const std::string_view name = statement.substr(begin, open - begin);
    if (is_identifier(name)) found.emplace_back(name);
  }
  return found;
}

struct Restored {
  trace::Position at;
  std::string object;
};

// Of the calls that led to a step, the one by which an object's method was entered whose own attribute said the device;
// and where that object was loaded.
std::optional<Restored> object_asked(const Inquiry& inquiry, const trace::Position& made, std::uint32_t calls) {
  const std::vector<trace::Position> frames = call_frames(made, calls);
  SourceFiles files;
  for (std::size_t k = 1; k < frames.size() && k <= kMaxCalls; ++k) {
    const std::string_view function = trace::function_around(runtime.recorder->string(frames[k - 1].function));
    const std::string_view method = trace::own_name(function);
    const std::string statement = statement_at(SourceLines(files.whole(frames[k].file)), frames[k].line);
    const bool called = method == "__call__" || method == "forward";
    const std::string receiver = called ? std::string() : receiver_of(statement, method);
    const std::vector<std::string> objects = called ? called_in(statement) : std::vector{receiver};
    for (const std::string& object : objects) {
      if (object.empty()) continue;
      const auto at = only_restoring(inquiry, object);
      if (at) return Restored{*at, object};
      if (!called) return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace

void find_restored(const Inquiry& inquiry, std::size_t operand) {
  visit_history(inquiry.operands[operand], [&](const trace::LineageNode& node, const trace::Position& made,
                                               const SourceLines& lines) {
    if (node.how == trace::How::derived) return true;
    std::string device = device_expression(code_text(lines, made));
    // `.to(self.device)` behind it, which has left it where it was made.
    if (device.empty()) device = device_expression(statement_at(lines, made.line));
    if (!device.starts_with("self.")) return false;
    if (const auto asked = object_asked(inquiry, made, node.calls)) {
      inquiry.found.add(trace::EvidenceKind::restored_at, operand, asked->at, asked->object + "." + device.substr(5));
    }
    return false;
  });
}

}  // namespace devsan::hooks
