#include "report/ranking/context.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "report/program/expressions.h"
#include "report/program/functions.h"
#include "report/program/positions.h"
#include "report/slice/history.h"

namespace devsan::report::ranking {

using program::Field;
using program::Kind;
using program::Node;

namespace {

bool contains_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

bool speaks_of_place(std::string_view name) {
  return name.find("device") != std::string_view::npos || name == "dev" || name == "gpu" || name == "where" ||
         name == "place" || name == "home";
}

// Whether code of the node names a device, moves something, or makes one tensor like another.
bool knows_device(Node node) {
  for (const Node at : node.subtree()) {
    if (at.is(Kind::Identifier) && speaks_of_place(at.text())) return true;
    if (!at.is(Kind::Call)) continue;
    const std::string_view called = slice::called_name(at);
    const bool method = at.child(Field::Function).is(Kind::Attribute);
    if ((method && (called == "to" || called == "cuda")) || called.ends_with("_like") || called.starts_with("new_")) {
      return true;
    }
  }
  return false;
}

bool keeps_device(Node class_definition) {
  for (const Node at : class_definition.subtree()) {
    if (at.is(Kind::Attribute) && at.child(Field::Object).text() == "self" && speaks_of_place(slice::last_name(at))) {
      return true;
    }
  }
  return false;
}

// The code asks a parameter something that only a tensor answers, or computes with it.
bool is_used_as_tensor(Node function, std::string_view parameter) {
  constexpr std::array<std::string_view, 20> kAsked{
      "shape",  "size", "device", "dtype", "dim",   "view",   "flatten", "unsqueeze", "sum",     "mean",
      "detach", "cpu",  "float",  "clone", "numel", "square", "abs",     "exp",       "reshape", "new_zeros"};
  for (const Node at : function.subtree()) {
    if (at.is(Kind::Identifier) && at.text() == parameter && at.parent().is(Kind::BinaryOperator)) return true;
    if (!at.is(Kind::Attribute) || std::ranges::find(kAsked, slice::last_name(at)) == kAsked.end()) continue;
    if (program::root_of(at).text() == parameter) return true;
  }
  return false;
}

bool has_tensor(Node function) {
  const program::Scope* scope = function.file().scopes().made_by(function);
  return scope != nullptr && std::ranges::any_of(scope->parameters, [&](const program::Parameter& one) {
           return one.name != "self" && one.name != "cls" && is_used_as_tensor(function, one.name);
         });
}

bool is_derived_from_any(Node class_definition, std::initializer_list<std::string_view> words) {
  const std::vector<Node> bases = program::bases_of(class_definition);
  return std::ranges::any_of(bases, [&](Node base) { return contains_any(slice::last_name(base), words); });
}

Surroundings surroundings_of(Node function) {
  Surroundings found;
  if (!function.is(Kind::FunctionDefinition)) {
    found.knows_device = function.is(Kind::Module) ? 1 : knows_device(function) ? 1 : 0;
    return found;
  }
  const Node owner = program::class_of(function);
  const std::string_view name = slice::name_of_function(function);
  found.knows_device = knows_device(function) ? 1 : owner && keeps_device(owner) ? 0.5 : 0;
  found.of_module = owner && is_derived_from_any(owner, {"Module", "Function"});
  found.has_tensor =
      has_tensor(function) || (found.of_module && (name == "forward" || name == "backward" || name == "__call__"));
  found.reads_data =
      contains_any(name, {"__getitem__", "collate", "__iter__", "tokeniz", "load", "read", "draw", "batches"}) ||
      (owner &&
       (is_derived_from_any(owner, {"Dataset", "Sampler"}) ||
        contains_any(slice::name_of_class(owner), {"Token", "Vocab", "Dataset", "Loader", "Reader", "Buffer"})));
  return found;
}

}  // namespace

double nearness(double distance) {
  return std::exp(-distance / 4);
}

Context::Context(const Finding& given, const slice::Code& its_code) : finding(given), code(its_code) {
  const auto marked = std::ranges::find_if(finding.operands, &Operand::odd);
  if (marked != finding.operands.end()) {
    odd = &*marked;
  } else {
    const auto host = std::ranges::find_if(finding.operands, &Operand::on_cpu);
    odd = host != finding.operands.end() ? &*host : finding.operands.empty() ? nullptr : &finding.operands.front();
  }
  if (odd != nullptr) {
    const auto rest = std::ranges::find_if(
        finding.operands, [&](const Operand& one) { return &one != odd && one.device != odd->device; });
    other = rest == finding.operands.end() ? nullptr : &*rest;
  }
  odd_step = odd == nullptr ? nullptr : slice::deciding_step(*odd);
  other_step = other == nullptr ? nullptr : slice::deciding_step(*other);
  if (finding.where) failing_function = code.function_at(*finding.where);
  odd_kept = is_kept(odd_step);
  other_kept = is_kept(other_step);
  const auto add = [&](const Frame& frame) {
    if (frame.library) library_files_.insert(frame.file);
    if (const Node function = code.function_at(frame)) ran_.insert(function);
  };
  for (const Frame& frame : finding.stack) add(frame);
  if (odd == nullptr) return;
  for (const LineageStep& step : odd->lineage) {
    add(step.at);
    for (const Frame& call : step.calls) add(call);
  }
}

// The outermost call of the step is none of those that fail now.
bool Context::is_kept(const LineageStep* step) const {
  if (step == nullptr) return false;
  const auto outermost = [&](const Frame* last, const std::vector<Frame>& frames) {
    for (const Frame& frame : frames) {
      if (code.file(frame.file) != nullptr) last = &frame;
    }
    return last;
  };
  const Frame* then = outermost(&step->at, step->calls);
  const Frame* now = outermost(nullptr, finding.stack);
  return now != nullptr && (then->file != now->file || then->line != now->line);
}

bool Context::is_at(const Frame& frame, const Candidate& candidate) const {
  return frame.line == candidate.line && frame.file == candidate.file->path();
}

const Surroundings& Context::around(Node function) const {
  const auto [found, fresh] = around_.try_emplace(function);
  if (fresh) found->second = surroundings_of(function);
  return found->second;
}

const std::set<std::string_view>& Context::moved_names(Node function) const {
  const auto [found, fresh] = moved_names_.try_emplace(function);
  const program::Scope* scope = fresh ? function.file().scopes().made_by(function) : nullptr;
  if (scope == nullptr) return found->second;
  for (const program::Definition* one : function.file().definitions().in(*scope)) {
    if (one->is_name() && one->value && traits_of(one->value).places()) found->second.insert(one->variable.name);
  }
  return found->second;
}

}  // namespace devsan::report::ranking
