// The ways by which a value comes to the variable that has it without an operator: one of several assignments, and the
// functions that hand it back. No operator runs there, so no history knows of them.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/waiting_calls.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/snapshot/callees.h"
#include "hooks/inprocess/snapshot/named_objects.h"
#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_puts.h"
#include "hooks/inprocess/source/python_results.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxDepth = 3;                // functions that hand back what another one gives them
constexpr std::size_t kMaxAssignments = 4;  // more than that tell nobody anything
constexpr std::size_t kMaxReturns = 3;      // of one function
constexpr int kMaxFunctions = 12;
constexpr int kMaxCallers = 4;

// "loss" of `return loss` and of `return loss.detach() / 2`; empty for several values, and where it begins otherwise.
std::string variable_returned(std::string_view statement) {
  const std::size_t blank = std::min(statement.find(' '), statement.size());
  const std::string_view value = trimmed(statement.substr(blank));
  std::string name = leading_name(value);
  const bool alone = end_of_expression(value, 0) == value.size();
  return alone && is_identifier(name) && name != "self" && call_in(value, name) != 0 ? name : "";
}

// `return [self.convert(v) for v in outputs]`
bool gives_entries(std::string_view statement) {
  constexpr std::string_view kReturn = "return ";
  if (!statement.starts_with(kReturn)) return false;
  const std::string_view value = trimmed(statement.substr(kReturn.size()));
  return value.starts_with('[') && closing_of(value, 0) + 1 == value.size() && value.find(" for ") != value.npos;
}

bool begins_empty(std::string_view value) {
  return value == "[]" || value == "list()";
}

// Looks for an object among the entries of another one, or of a dictionary that this keeps, as a UserDict does.
class Entries final : public LinkVisitor {
 public:
  explicit Entries(const void* wanted) : wanted_(wanted) {}

  bool are_of(const void* object) {
    visit_links(const_cast<void*>(object), *this);
    if (!found_ && kept_ != nullptr) visit_links(std::exchange(kept_, nullptr), *this);
    return found_;
  }
  bool link(const Link& link, void* object) override {
    found_ = object == wanted_ && is_entry(link.kind);
    if (link.kind == LinkKind::attribute && is_dict(object)) kept_ = object;
    return !found_;
  }

 private:
  const void* wanted_;
  void* kept_ = nullptr;
  bool found_ = false;
};

class HandedBack {
 public:
  HandedBack(const Inquiry& inquiry, std::size_t operand) : inquiry_(inquiry), operand_(operand) {}

  // `at`: a place of the search.
  void follow(std::uint32_t at) {
    if (at == kNoPlace) return;
    while (!inquiry_.search.is_root(at)) at = inquiry_.search.place(at).parent;
    const Bindings bindings = bindings_at(inquiry_, operand_, inquiry_.search.place(at));
    if (bindings.frame == nullptr || bindings.lines.size() > kMaxAssignments) return;
    root_ = inquiry_.search.place(at).object;
    const bool certain = choose(inquiry_, operand_, bindings.lines).has_value();
    for (const Candidate& one : bindings.lines) {
      if (!certain) inquiry_.found.add(trace::EvidenceKind::perhaps_bound_at, operand_, one.at, bindings.name);
      const SourceLines lines(files_.whole(one.at.file));
      const std::string statement = statement_at(lines, one.at.line);
      given_whole_ = statement.find(" for ") == statement.npos;
      follow_calls({bindings.frame, nullptr}, statement, 0);
    }
  }

  // `model(**send(batch, device))`: what a call takes apart that hands its argument back.
  void follow_unpacked() {
    const void* frame = program_frame(inquiry_.innermost);
    for (int depth = 0; frame != nullptr && depth < kMaxCallers; ++depth) {
      frame = caller_of(frame);
      if (frame != nullptr && look_at_unpacked(frame)) return;
    }
  }

  // `boxes, scores = detect(images)`, where the failing function was given `boxes[:, 4:]`.
  void follow_container() {
    root_ = inquiry_.object_of(operand_);
    if (root_ == nullptr) return;  // of C++ alone, no object of Python
    for (const trace::EvidenceRecord& one : inquiry_.found.records()) {
      if (one.operand != operand_ || one.kind != trace::EvidenceKind::container_bound_at) continue;
      const void* frame = running_frame(inquiry_.innermost, one.at);
      if (frame == nullptr) continue;
      given_whole_ = false;
      follow_calls({frame, nullptr}, statement_at(SourceLines(files_.whole(one.at.file)), one.at.line), 0);
      return;
    }
  }

  // `x * self.background()`, where the method hands back an attribute of its object: the failing line has no name for
  // it but the call.
  void follow_call() {
    const Sighting& sighting = inquiry_.search.sighting(operand_);
    const void* frame = program_frame(inquiry_.innermost);
    if (sighting.place == kNoPlace || inquiry_.search.is_root(sighting.place) || frame == nullptr) return;
    const std::string path = inquiry_.search.path_to(sighting.place);
    const trace::Position waits = waits_at(frame);
    const SourceLines failing(files_.whole(waits.file));
    const std::string statement = statement_at(failing, waits.line);
    if (!path.starts_with("self.") || statement.find(path) != statement.npos) return;
    for (const std::string& call : callees_in(statement)) {
      const Callee callee = callee_behind({frame, nullptr}, call);
      if (callee.code != nullptr && ++functions_ < kMaxFunctions) find_path(callee, call, path);
    }
  }

 private:
  // A function that a call runs, by its text.
  struct Body {
    explicit Body(const Callee& callee)
        : self(callee.self),
          file(position_of(callee.code, 0).file),
          lines(files.whole(file)),
          returns(returns_of(lines, code_first_line(callee.code))) {}

    void* self;
    SourceFiles files;
    trace::StringId file;
    SourceLines lines;
    std::vector<int> returns;
  };

  // Whether the call that waits in a frame takes something apart which has the operand.
  bool look_at_unpacked(const void* frame) {
    const trace::Position at = waits_at(frame);
    const auto waiting = call_text(code_text(SourceLines(files_.whole(at.file)), at));
    if (!waiting) return false;
    for (const std::string& argument : waiting->arguments) {
      const std::size_t stars = argument.find_first_not_of('*');
      const auto inner = stars != 0 && stars != argument.npos ? call_text(argument.substr(stars)) : std::nullopt;
      if (!inner || inner->arguments.empty() || ++functions_ >= kMaxFunctions) continue;
      const void* given = object_behind(frame, inner->arguments.front());
      const Callee callee = callee_behind({frame, nullptr}, inner->callee);
      if (given == nullptr || callee.code == nullptr || !Entries(inquiry_.object_of(operand_)).are_of(given)) continue;
      find_handed_back_whole(inquiry_, operand_, callee.code, given, true);
      return true;
    }
    return false;
  }

  void add(trace::EvidenceKind kind, const Body& body, int line, const std::string& text) {
    inquiry_.found.add(kind, operand_, position_at(body.file, line, qualified_function(body.lines, line)), text);
  }

  // The lines that give the variable its value which a line of a function hands back, by its name.
  static std::vector<int> stores_of(const Body& body, const std::string& variable, int line) {
    if (variable.empty()) return {};
    return assignments_of(body.lines, variable, enclosing_line(body.lines, line, "def ") + 1, line);
  }

  // The line of a function that returns what a path leads to, or gives it the variable that another one returns.
  void find_path(const Callee& callee, const std::string& call, const std::string& path) {
    const Body body(callee);
    for (const int line : body.returns) {
      const std::string statement = statement_at(body.lines, line);
      if (statement == "return " + path) add(trace::EvidenceKind::handed_back_at, body, line, call);
      const std::string name = variable_returned(statement);
      for (const int store : stores_of(body, name, line)) {
        if (assigned_to(statement_at(body.lines, store), name) != path) continue;
        add(trace::EvidenceKind::taken_over_at, body, store, name);
        add(trace::EvidenceKind::handed_back_at, body, line, call);
      }
    }
  }

  // Whether the statement calls a function of the program that hands something back.
  bool follow_calls(const NameScope& scope, const std::string& statement, int depth) {
    bool followed = false;
    for (const std::string& call : callees_in(statement)) {
      if (functions_ >= kMaxFunctions) break;
      const Callee callee = callee_behind(scope, call);
      const bool entries = !followed && gives_entries(statement);
      if (callee.code != nullptr && follow_returns(callee, call, depth, entries)) followed = true;
    }
    return followed;
  }

  // `entries`: it is given the entries one by one of which the operand is one.
  bool follow_returns(const Callee& callee, const std::string& call, int depth, bool entries) {
    ++functions_;
    const Body body(callee);
    if (body.returns.empty() || body.returns.size() > kMaxReturns) return false;
    if (depth == 0) find_handed_back_whole(inquiry_, operand_, callee.code, root_, given_whole_);
    if (entries) find_entry_handed_back(inquiry_, operand_, callee.code, root_);
    for (const int line : body.returns) {
      add(trace::EvidenceKind::handed_back_at, body, line, call);
      if (depth == 0) find_mover(body, line, call);
      if (depth >= kMaxDepth) continue;
      follow_calls({nullptr, body.self}, statement_at(body.lines, line), depth + 1);
      follow_variable(body, line, depth + 1);
    }
    return true;
  }

  // `batch[key] = batch[key].to(device)` in a function that returns its argument `batch`.
  void find_mover(const Body& body, int line, const std::string& call) {
    const std::string name = variable_returned(statement_at(body.lines, line));
    const int definition = enclosing_line(body.lines, line, "def ");
    if (name.empty() || definition == 0 || !parameter_of(statement_at(body.lines, definition), name)) return;
    int move = 0;
    for (int k = definition + 1; k < line; ++k) {
      if (is_blank(body.lines[k]) || !mentions_name(body.lines[k], name)) continue;
      if (!trace::calls_method(statement_at(body.lines, k), trace::kMoves)) continue;
      if (move != 0) return;
      move = k;
    }
    if (move == 0) return;
    const int condition = condition_on_way(body.lines, definition, move);
    add(trace::EvidenceKind::left_by_mover_at, body, condition != 0 ? condition : move, call);
  }

  // The `if` that a line stands in; or the nearest above it in its block that goes on with the next turn, or returns.
  static int condition_on_way(const SourceLines& lines, int definition, int line) {
    if (const int around = enclosing_line(lines, line, "if "); around > definition) return around;
    for (int k = line - 1; k > definition; --k) {
      if (is_blank(lines[k]) || indentation(lines[k]) > indentation(lines[line])) continue;
      if (indentation(lines[k]) < indentation(lines[line])) return 0;
      if (!trimmed(lines[k]).starts_with("if ")) continue;
      const std::string_view inside = trimmed(lines[k + 1]);
      if (inside.starts_with("continue") || inside.starts_with("return")) return k;
    }
    return 0;
  }

  // What the function gives the variable that it hands back: what another one does, or the entries of a list.
  void follow_variable(const Body& body, int line, int depth) {
    const std::string name = variable_returned(statement_at(body.lines, line));
    const std::vector<int> stores = stores_of(body, name, line);
    if (stores.size() != 1) return;
    const std::string statement = statement_at(body.lines, stores.front());
    if (begins_empty(assigned_to(statement, name).value_or(""))) {
      const int put = only_put(body.lines, name, stores.front(), line);
      if (put != 0) add(trace::EvidenceKind::gathered_at, body, put, name);
    } else if (follow_calls({nullptr, body.self}, statement, depth)) {
      add(trace::EvidenceKind::taken_over_at, body, stores.front(), name);
    }
  }

  // The only line between two that puts something into a list; 0 without one.
  static int only_put(const SourceLines& lines, std::string_view list, int begin, int end) {
    int found = 0;
    for (int k = begin + 1; k < end; ++k) {
      if (is_blank(lines[k]) || !mentions_name(lines[k], list)) continue;
      const auto fills = [&](const ContainerPut& put) { return put.container == list; };
      if (!std::ranges::any_of(puts_in(statement_at(lines, k)), fills)) continue;
      if (found != 0) return 0;
      found = k;
    }
    return found;
  }

  const Inquiry& inquiry_;
  const std::size_t operand_;
  const void* root_ = nullptr;  // what the variable refers to
  bool given_whole_ = false;    // no comprehension calls the function for its parts
  SourceFiles files_;
  int functions_ = 0;
};

}  // namespace

void find_handed_back(const Inquiry& inquiry, std::size_t operand) {
  HandedBack search(inquiry, operand);
  search.follow(inquiry.search.sighting(operand).place);
  search.follow_call();
  search.follow_unpacked();
  search.follow_container();
  const Ancestor& ancestor = inquiry.search.ancestor(operand);
  if (ancestor.certain && ancestor.place != inquiry.search.sighting(operand).place) search.follow(ancestor.place);
}

}  // namespace devsan::hooks
