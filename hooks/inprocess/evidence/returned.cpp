// A part of a model that works on a device of its own: it brings what it is given there, and returns what it makes of
// that as it is, to a caller whose values are where the input came from.
#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/waiting_calls.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/lineage_nodes.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/snapshot/named_objects.h"
#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_text.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxCalls = 16;

// Where values were copied from one device to another.
template <class Visit>
void visit_moves(trace::DeviceSlot from, trace::DeviceSlot to, Visit visit) {
  visit_lineage_nodes([&](trace::LineageId, const trace::LineageNode& node) {
    if (node.how != trace::How::moved || node.device != to) return;
    if (runtime.recorder->lineage(node.parent).device == from) visit(runtime.recorder->site(node.site).user);
  });
}

// "x" of `x.to(self.device)`, also in a longer statement: a variable that is moved to a device that one of `owners`
// tells of, mostly `self`.
std::string moved_to_own(std::string_view statement, std::span<const std::string> owners) {
  for (const std::string_view move : trace::kMoves) {
    for (std::size_t at = name_in(statement, move); at != statement.npos; at = name_in(statement, move, at + 1)) {
      const std::size_t open = at + move.size();
      const std::string_view target = statement.substr(open + 1, end_of_expression(statement, open + 1) - open - 1);
      if (at == 0 || statement[at - 1] != '.' || !statement.substr(open).starts_with('(')) continue;
      const auto tells = [&](const std::string& owner) { return has_word(target, owner); };
      if (std::ranges::none_of(owners, tells) || target.find("dtype") != target.npos) continue;
      std::size_t begin = at - 1;
      while (begin > 0 && trace::is_word(statement[begin - 1])) --begin;
      const std::string_view name = statement.substr(begin, at - 1 - begin);
      if (is_identifier(name) && (begin == 0 || statement[begin - 1] != '.')) return std::string(name);
    }
  }
  return "";
}

// Whether a variable of a statement is an argument, or goes through one: `[one.to(self.device) for one in args]`.
bool is_given(const std::string& name, std::string_view statement, const std::vector<std::string>& arguments) {
  if (std::ranges::find(arguments, name) != arguments.end()) return true;
  const std::size_t loop = statement.find(" for ");
  const std::size_t in = loop != statement.npos ? statement.find(" in ", loop) : loop;
  return in != statement.npos && has_word(statement.substr(loop, in - loop), name) &&
         std::ranges::any_of(arguments, [&](const auto& one) { return has_word(statement.substr(in), one); });
}

// The text of a method.
class Method {
 public:
  // `part`: it is the function of a part, which has a device of its own; any other may be told one by a part that it is
  // given, as `run(expert, x)` is.
  Method(const void* code, bool part) : at_(position_of(code, 0)), lines_(files_.whole(at_.file)), part_(part) {
    for (int k = 0; k < code_all_arguments(code); ++k) {
      names_.push_back(text_of(code_local_name(code, k)));
    }
    definition_ = definition_below(lines_, code_first_line(code));
  }

  // Where it returns what it made of an argument that it brought from one device to another, its own; none where
  // several lines may.
  struct Returned {
    trace::Position at;
    std::string argument;
  };
  std::optional<Returned> returned(trace::DeviceSlot from, trace::DeviceSlot own) {
    if (names_.empty()) return std::nullopt;
    int brought = 0;
    std::string argument;
    visit_moves(from, own, [&](const trace::Position& move) {
      if (brought != 0 || move.file != at_.file || !stands_in(move.line)) return;
      const std::string statement = statement_at(lines_, move.line);
      argument = moved_to_own(statement, owners());
      if (!argument.empty() && is_given(argument, statement, names_)) brought = move.line;
    });
    const int line = brought != 0 ? only_return(brought) : 0;
    if (line == 0) return std::nullopt;
    return Returned{position_at(at_.file, line, qualified_function(lines_, line)), argument};
  }

 private:
  bool stands_in(int line) const { return line > definition_ && enclosing_line(lines_, line, "def ") == definition_; }

  // The only one at or behind a line, which hands on as it is what it returns.
  int only_return(int begin) const {
    int found = 0;
    const int end = end_of_function(lines_, begin);
    for (int k = begin; k <= end; ++k) {
      if (!trimmed(lines_[k]).starts_with("return") || !stands_in(k)) continue;
      if (found != 0) return 0;
      found = k;
    }
    const std::string statement = found != 0 ? statement_at(lines_, found) : std::string();
    const bool moves = trace::calls_method(statement, trace::kMoves) && moved_to_own(statement, owners()).empty();
    return moves ? 0 : found;
  }

  std::span<const std::string> owners() const { return std::span(names_).first(part_ ? 1 : names_.size()); }

  SourceFiles files_;
  const trace::Position at_;
  const SourceLines lines_;
  const bool part_;
  int definition_ = 0;
  std::vector<std::string> names_;  // of the arguments
};

// The forward() of a part of a larger module: "self.expert", where that is one. Who calls a model as a whole knows
// where it is.
const void* forward_of(const Inquiry& inquiry, const void* frame, std::string_view callee) {
  const void* object = object_behind(frame, callee);
  if (object == nullptr || !is_torch_module(object) || inquiry.search.parent_module(object) == nullptr) return nullptr;
  return method_named(type_of(object), "forward");
}

// "self.run" of `self.run(expert, x)`: another method of the object whose method a frame runs.
const void* own_method(const void* frame, std::string_view callee) {
  constexpr std::string_view kSelf = "self.";
  const bool own = callee.starts_with(kSelf) && is_identifier(callee.substr(kSelf.size()));
  const void* self = own ? variable_named(frame, "self") : nullptr;
  return self != nullptr ? method_named(type_of(self), callee.substr(kSelf.size())) : nullptr;
}

struct Statement {
  const void* frame;
  std::string text;
};

// The failing call, and the statements that gave their values to the variables which the operand is, or was made of.
std::vector<Statement> statements_of(const Inquiry& inquiry, std::size_t operand) {
  const void* const innermost = program_frame(inquiry.innermost);
  std::vector<Statement> statements;
  SourceFiles files;
  const auto add = [&](const void* frame, const trace::Position& at) {
    const SourceLines lines(files.whole(at.file));
    std::string code = code_text(lines, at);
    statements.push_back({frame, code.empty() ? statement_at(lines, at.line) : std::move(code)});
  };
  if (innermost != nullptr) add(innermost, waits_at(innermost));
  for (std::uint32_t at : {inquiry.search.sighting(operand).place, inquiry.search.ancestor(operand).place}) {
    while (at != kNoPlace && !inquiry.search.is_root(at)) at = inquiry.search.place(at).parent;
    const auto binding =
        at != kNoPlace ? binding_at(inquiry, operand, inquiry.search.place(at)) : std::optional<Binding>();
    if (at != kNoPlace && !binding && inquiry.search.place(at).frame != nullptr) {
      // `*skips`: the call that waits for the function may have made it.
      const void* caller = caller_of(inquiry.search.place(at).frame);
      if (caller != nullptr) add(caller, waits_at(caller));
    }
    const void* frame = innermost;
    for (int calls = 0; binding && frame != nullptr && calls < kMaxCalls; ++calls, frame = caller_of(frame)) {
      const trace::Position waits = waits_at(frame);
      if (waits.file != binding->at.file || waits.function != binding->at.function) continue;
      const SourceLines lines(files.whole(waits.file));
      statements.push_back({frame, statement_at(lines, binding->at.line)});
      break;
    }
  }
  return statements;
}

// What NumPy asks for has come out of a method that had brought what it was given from the host to its own device.
void find_returned_to_host(const Inquiry& inquiry, std::size_t operand, trace::DeviceSlot host) {
  const trace::DeviceSlot own = inquiry.operands[operand].device;
  visit_steps(inquiry.operands[operand].lineage, [&](const trace::LineageNode& step) {
    if (step.how != trace::How::derived || step.device != own) return false;
    const trace::Position at = runtime.recorder->site(step.site).user;
    const void* code = is_running(program_frame(inquiry.innermost), at) ? nullptr : code_at(inquiry, at);
    if (code == nullptr) return true;
    const auto returned = Method(code, true).returned(host, own);
    if (!returned) return true;
    inquiry.found.add(trace::EvidenceKind::returned_at, operand, returned->at, returned->argument);
    return false;
  });
}

}  // namespace

void find_returned(const Inquiry& inquiry, std::size_t operand) {
  const trace::DeviceSlot own = inquiry.operands[operand].device;
  const auto differs = [own](const trace::OperandRecord& other) { return other.device != own; };
  const auto other = std::ranges::find_if(inquiry.operands, differs);
  if (other == inquiry.operands.end()) return;
  if (inquiry.is_for_numpy()) return find_returned_to_host(inquiry, operand, other->device);
  if (!all_on_accelerators(inquiry)) return;
  for (const Statement& statement : statements_of(inquiry, operand)) {
    for (const std::string& callee : callees_in(statement.text)) {
      const void* part = forward_of(inquiry, statement.frame, callee);
      const void* code = part != nullptr ? part : own_method(statement.frame, callee);
      const auto returned = code != nullptr ? Method(code, part != nullptr).returned(other->device, own) : std::nullopt;
      if (!returned) continue;
      return inquiry.found.add(trace::EvidenceKind::returned_at, operand, returned->at, returned->argument);
    }
  }
}

}  // namespace devsan::hooks
