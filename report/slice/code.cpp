#include "report/slice/code.h"

#include <algorithm>

#include "report/program/expressions.h"
#include "report/program/functions.h"
#include "report/program/positions.h"

namespace devsan::report::slice {

using program::Field;
using program::Kind;
using program::Node;

namespace {

program::Range range_of(const Frame& frame) {
  return {frame.line, frame.end_line > 0 ? frame.end_line : -1, frame.column, frame.end_column};
}

std::string_view plain_name(std::string_view qualified) {
  const std::size_t dot = qualified.rfind('.');
  return dot == std::string_view::npos ? qualified : qualified.substr(dot + 1);
}

bool covers(Node node, int line) {
  const program::Range range = node.range();
  return range.line <= line && line <= range.end_line;
}

template <class Visit>
void each_history_frame(const Finding& finding, const Visit& visit) {
  for (const Operand& operand : finding.operands) {
    for (const LineageStep& step : operand.lineage) {
      visit(step.at);
      for (const Frame& call : step.calls) visit(call);
      for (const Frame& within : step.within) visit(within);
    }
  }
}

// The steps of a history with the calls around them, innermost first.
std::vector<Frame> chain_of(const LineageStep& step) {
  std::vector<Frame> chain = step.within;
  chain.push_back(step.at);
  chain.insert(chain.end(), step.calls.begin(), step.calls.end());
  return chain;
}

}  // namespace

const FileIndex* Codebase::file(const std::string& path) {
  const auto known = files_.find(path);
  if (known != files_.end()) return known->second.get();
  std::unique_ptr<FileIndex>& index = files_[path];
  const auto source = sources_.find(path);
  if (source != sources_.end() && source->second.text) {
    index = std::make_unique<FileIndex>(program_.add(path, *source->second.text));
  }
  return index.get();
}

Code::Code(Codebase& codebase, const Finding& finding) {
  const auto add = [&](const Frame& frame) {
    if (frame.torch || frame.file.empty() || file(frame.file) != nullptr) return;
    if (const FileIndex* index = codebase.file(frame.file)) files_.push_back(index);
  };
  if (finding.where) add(*finding.where);
  for (const Frame& frame : finding.stack) add(frame);
  if (finding.forward) std::ranges::for_each(*finding.forward, add);
  each_history_frame(finding, add);
  add_calls(finding.stack);
  if (finding.forward) add_calls(*finding.forward);
  for (const Operand& operand : finding.operands) {
    for (const LineageStep& step : operand.lineage) add_calls(chain_of(step));
  }
}

const FileIndex* Code::file(std::string_view path) const {
  const auto found = std::ranges::find_if(files_, [&](const FileIndex* one) { return one->file().path() == path; });
  return found == files_.end() ? nullptr : *found;
}

bool Code::defines(std::string_view name) const {
  return std::ranges::any_of(
      files_, [&](const FileIndex* one) { return !one->functions(name).empty() || !one->classes(name).empty(); });
}

Node Code::node_at(const Frame& frame) const {
  const FileIndex* index = file(frame.file);
  return index == nullptr ? Node() : program::node_at(index->file(), range_of(frame));
}

Node Code::function_at(const Frame& frame) const {
  const FileIndex* index = file(frame.file);
  if (index == nullptr) return {};
  const Node statement = program::statement_at(index->file(), frame.line);
  if (!statement) return {};
  const std::string_view name = plain_name(frame.function);
  if (name == "<module>") return index->file().root();
  Node at = node_at(frame);
  // A definition's own line belongs to the function where a frame that has its name runs there.
  Node function = at.is(Kind::FunctionDefinition) || at.is(Kind::Lambda) ? at : body_of(at ? at : statement);
  const Node innermost = function;
  while (function && !function.is(Kind::Module) && name_of_function(function) != name) function = body_of(function);
  return function && !function.is(Kind::Module) ? function : innermost;
}

const Nodes& Code::calls_that_ran(Node function) const {
  static const Nodes kNone;
  const auto found = ran_.find(function);
  return found == ran_.end() ? kNone : found->second;
}

void Code::add_calls(const std::vector<Frame>& frames) {
  for (std::size_t k = 0; k + 1 < frames.size(); ++k) {
    const Node function = function_at(frames[k]);
    if (!function || function.is(Kind::Module)) continue;
    // What torch runs in between, as Module.__call__, is no caller of its own.
    std::size_t caller = k + 1;
    while (caller < frames.size() && file(frames[caller].file) == nullptr) ++caller;
    if (caller == frames.size()) return;
    const Node call = call_at(frames[caller], function);
    Nodes& known = ran_[function];
    if (call && std::ranges::find(known, call) == known.end()) known.push_back(call);
  }
}

Node Code::call_at(const Frame& frame, Node function) const {
  const Node at = program::without_parentheses(node_at(frame));
  if (at.is(Kind::Call) && frame.column >= 0) return at;
  const FileIndex* index = file(frame.file);
  if (index == nullptr) return {};
  const std::string_view name = name_of_function(function);
  const Node owner = program::class_of_method(function);
  Nodes here;
  std::ranges::copy_if(index->all_calls(), std::back_inserter(here),
                       [&](Node call) { return covers(call, frame.line); });
  for (const Node call : here) {
    const std::string_view called = called_name(call);
    if (called == name || (name == "__init__" && owner && called == name_of_class(owner))) return call;
  }
  for (const Node call : here) {
    if (owner && may_be_object_of(call.child(Field::Function), owner)) return call;
  }
  return here.empty() ? Node() : here.front();
}

bool Code::may_be_object_of(Node expression, Node class_definition) const {
  if (!class_definition) return false;
  const std::string_view name = name_of_class(class_definition);
  if (expression.is(Kind::Call)) return called_name(expression) == name;
  const std::string_view variable = last_name(expression);
  if (variable.empty()) return false;
  for (const FileIndex* index : files_) {
    for (const Node call : index->calls(name)) {
      // `self.net = nn.Sequential(Net(), …)` as well: the object is somewhere in the value.
      Node at = call.parent();
      while (at && !program::is_statement(at) && !at.is(Kind::Assignment)) at = at.parent();
      if (!at.is(Kind::Assignment)) continue;
      for (const program::Definition* one : index->file().definitions().at(at)) {
        if (last_name(one->target) == variable) return true;
      }
    }
  }
  return false;
}

Nodes Code::subclasses_of(std::string_view name) const {
  Nodes found;
  for (const FileIndex* index : files_) {
    std::ranges::copy_if(index->all_classes(), std::back_inserter(found),
                         [&](Node one) { return is_derived_from(one, name); });
  }
  return found;
}

bool is_derived_from(Node class_definition, std::string_view base) {
  const Nodes bases = program::bases_of(class_definition);
  return std::ranges::any_of(bases, [&](Node one) { return last_name(one) == base; });
}

std::string_view name_of_class(Node class_definition) {
  return class_definition.child(Field::Name).text();
}

}  // namespace devsan::report::slice
