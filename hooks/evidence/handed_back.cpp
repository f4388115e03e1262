// The ways by which a value comes to the variable that has it without an operator: one of several assignments, and the
// functions that hand it back. No operator runs there, so no history knows of them.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/evidence/evidence.h"
#include "hooks/names/callees.h"
#include "hooks/origins/sites.h"
#include "hooks/python/code_api.h"
#include "hooks/source/python_calls.h"
#include "hooks/source/python_text.h"
#include "hooks/source/source_files.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxDepth = 3;                // functions that hand back what another one gives them
constexpr std::size_t kMaxAssignments = 4;  // more than that tell nobody anything
constexpr std::size_t kMaxReturns = 3;      // of one function
constexpr int kMaxFunctions = 12;

// The lines on which a function hands something back, by its text; its first line may be a decorator.
std::vector<int> returns_of(const SourceLines& lines, int first) {
  const int definition = definition_below(lines, first);
  std::vector<int> found;
  if (definition == 0) return found;
  const int end = end_of_function(lines, definition + 1);
  for (int k = definition + 1; k <= end; ++k) {
    const std::string_view text = trimmed(lines[k]);
    if (!text.starts_with("return ") && !text.starts_with("yield ")) continue;
    if (enclosing_line(lines, k, "def ") == definition) found.push_back(k);
  }
  return found;
}

class HandedBack {
 public:
  HandedBack(const Inquiry& inquiry, std::size_t operand) : inquiry_(inquiry), operand_(operand) {}

  // `at`: a place of the search.
  void follow(std::uint32_t at) {
    if (at == kNoPlace) return;
    while (!inquiry_.search.is_root(at)) at = inquiry_.search.place(at).parent;
    const Bindings bindings = bindings_at(inquiry_, operand_, inquiry_.search.place(at));
    if (bindings.frame == nullptr || bindings.lines.size() > kMaxAssignments) return;
    const bool certain = choose(inquiry_, operand_, bindings.lines).has_value();
    for (const Candidate& one : bindings.lines) {
      if (!certain) inquiry_.found.add(trace::EvidenceKind::perhaps_bound_at, operand_, one.at, bindings.name);
      const SourceLines lines(files_.whole(one.at.file));
      follow_calls({bindings.frame, nullptr}, statement_at(lines, one.at.line), 0);
    }
  }

 private:
  void follow_calls(const NameScope& scope, const std::string& statement, int depth) {
    for (const std::string& call : callees_in(statement)) {
      if (functions_ >= kMaxFunctions) return;
      const Callee callee = callee_behind(scope, call);
      if (callee.code != nullptr) follow_returns(callee, call, depth);
    }
  }

  void follow_returns(const Callee& callee, const std::string& call, int depth) {
    ++functions_;
    const trace::StringId file = position_of(callee.code, 0).file;
    SourceFiles files;
    const SourceLines lines(files.whole(file));
    const std::vector<int> returns = returns_of(lines, code_first_line(callee.code));
    if (returns.empty() || returns.size() > kMaxReturns) return;
    for (const int line : returns) {
      const trace::Position at = position_at(file, line, qualified_function(lines, line));
      inquiry_.found.add(trace::EvidenceKind::handed_back_at, operand_, at, call);
      if (depth < kMaxDepth) follow_calls({nullptr, callee.self}, statement_at(lines, line), depth + 1);
    }
  }

  const Inquiry& inquiry_;
  const std::size_t operand_;
  SourceFiles files_;
  int functions_ = 0;
};

}  // namespace

void find_handed_back(const Inquiry& inquiry, std::size_t operand) {
  HandedBack search(inquiry, operand);
  search.follow(inquiry.search.sighting(operand).place);
  const Ancestor& ancestor = inquiry.search.ancestor(operand);
  if (ancestor.certain && ancestor.place != inquiry.search.sighting(operand).place) search.follow(ancestor.place);
}

}  // namespace devsan::hooks
