#include "report/slice/code.h"

#include <algorithm>
#include <fstream>
#include <optional>

#include "report/program/expressions.h"
#include "report/program/flow.h"
#include "report/program/functions.h"
#include "report/program/positions.h"
#include "trace/source_hash.h"

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

// The file of which the run kept the hash alone, where it is still the same.
std::optional<std::string> unchanged(const std::string& path, const SourceText& known) {
  constexpr std::uint64_t kLargest = 4 << 20;
  if (known.hash == 0 || known.size > kLargest) return std::nullopt;
  std::ifstream in(path, std::ios::binary);
  std::string text(known.size, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  const bool whole = in.gcount() == static_cast<std::streamsize>(text.size()) && in.peek() == EOF;
  if (!whole || trace::source_hash(text) != known.hash) return std::nullopt;
  return text;
}

}  // namespace

const FileIndex* Codebase::file(const std::string& path) {
  const auto known = files_.find(path);
  if (known != files_.end()) return known->second.get();
  std::unique_ptr<FileIndex>& index = files_[path];
  const auto source = sources_.find(path);
  if (source == sources_.end()) return nullptr;
  const std::optional<std::string> text = source->second.text ? source->second.text : unchanged(path, source->second);
  if (text) index = std::make_unique<FileIndex>(program_.add(path, *text));
  return index.get();
}

Code::Code(Codebase& codebase, const Finding& finding, Files files) {
  const auto add = [&](const Frame& frame) {
    if (frame.torch || frame.file.empty() || file(frame.file) != nullptr) return;
    if (frame.library && files == Files::program) return;
    if (frame.library) libraries_.insert(frame.file);
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

Node Code::class_made_by(Node value) const {
  const Node bare = program::awaited(value);
  if (!bare.is(Kind::Call)) return {};
  // `Net().to(device)` is the same object.
  const std::string_view called = called_name(bare);
  if (called == "to" || called == "cuda" || called == "cpu" || called == "eval" || called == "train") {
    return class_made_by(program::call_parts(bare).receiver());
  }
  const Nodes known = classes(called);
  return known.size() == 1 ? known.front() : Node();
}

Node Code::class_of_object(Node expression) const {
  const auto [found, fresh] = class_of_object_.try_emplace(expression);
  if (fresh) found->second = find_class_of(expression);
  return found->second;
}

Node Code::find_class_of(Node expression) const {
  if (expression.is(Kind::Call)) {
    return called_name(expression) == "super" ? program::class_of(expression) : class_made_by(expression);
  }
  const program::SourceFile& file = expression.file();
  Node one;
  const auto add = [&](const program::Definition& definition) {
    const Node made = definition.path.empty() && definition.value ? class_made_by(definition.value) : Node();
    if (!made || (one && one != made)) return false;
    one = made;
    return true;
  };
  if (expression.is(Kind::Identifier)) {
    for (const program::Reached& reached : file.flow().reaching(expression).definitions) {
      const program::Definition& definition = *reached.definition;
      const bool first = definition.kind == program::DefinitionKind::Parameter && definition.scope != nullptr &&
                         !definition.scope->parameters.empty() &&
                         definition.scope->parameters.front().name == definition.variable.name;
      if (const Node owner = first ? program::class_of_method(definition.scope->node) : Node()) return owner;
      if (!add(definition)) return {};
    }
    return one;
  }
  if (!expression.is(Kind::Attribute)) return {};
  const Node owner = class_of_object(expression.child(Field::Object));
  if (!owner) return {};
  for (const program::Definition* store : stores(last_name(expression))) {
    if (is_in(store->statement, family_of(owner)) && !add(*store)) return {};
  }
  return one;
}

const Nodes& Code::family_of(Node class_definition) const {
  const auto [found, fresh] = families_.try_emplace(class_definition);
  Nodes& family = found->second;
  if (!fresh) return family;
  family.push_back(class_definition);
  const auto add = [&](const Nodes& some) {
    for (const Node one : some) {
      if (std::ranges::find(family, one) == family.end()) family.push_back(one);
    }
  };
  for (std::size_t k = 0; k < family.size(); ++k) {  // upwards
    for (const Node base : program::bases_of(family[k])) add(classes(last_name(base)));
  }
  const std::size_t above = family.size();
  for (std::size_t k = 0; k < family.size(); ++k) {
    if (k == 0 || k >= above) add(subclasses_of(name_of_class(family[k])));
  }
  return family;
}

Nodes Code::called_by_name(Node identifier) const {
  const std::string_view name = identifier.text();
  Nodes found;
  bool bound = false;
  for (const program::Reached& reached : identifier.file().flow().reaching(identifier).definitions) {
    const program::Definition& definition = *reached.definition;
    switch (definition.kind) {
      case program::DefinitionKind::Function:
      case program::DefinitionKind::Class:
        found.push_back(definition.statement);
        break;
      case program::DefinitionKind::Import:
      case program::DefinitionKind::StarImport:
        break;
      default:
        bound = true;
    }
  }
  if (!found.empty() || bound) return found;
  for (const Node function : functions(name)) {
    if (!program::class_of_method(function)) found.push_back(function);
  }
  const Nodes some = classes(name);
  found.insert(found.end(), some.begin(), some.end());
  return found;
}

Nodes Code::subclasses_of(std::string_view name) const {
  Nodes found;
  for (const FileIndex* index : files_) {
    std::ranges::copy_if(index->all_classes(), std::back_inserter(found),
                         [&](Node one) { return is_derived_from(one, name); });
  }
  return found;
}

bool is_in(Node node, const Nodes& classes) {
  const Node owner = program::class_of(node);
  return owner && std::ranges::find(classes, owner) != classes.end();
}

bool is_derived_from(Node class_definition, std::string_view base) {
  const Nodes bases = program::bases_of(class_definition);
  return std::ranges::any_of(bases, [&](Node one) { return last_name(one) == base; });
}

std::string_view name_of_class(Node class_definition) {
  return class_definition.child(Field::Name).text();
}

}  // namespace devsan::report::slice
