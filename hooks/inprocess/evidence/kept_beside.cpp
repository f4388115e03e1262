// A module that an object's constructor keeps as it was given, `self.teacher = teacher.eval()`, where it moves another
// one that it keeps beside it: `self.model = model.to(device)`, by itself or by a helper.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "hooks/inprocess/evidence/call_frames.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/module_weights.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_moves.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"

namespace devsan::hooks {

namespace {

using Positions = std::vector<trace::Position>;

bool is_in(const trace::Position& at, const Positions& functions) {
  return std::ranges::any_of(functions, [&](const trace::Position& one) { return same_function(one, at); });
}

// The line of one of the constructors that moved a module to where the operand is missed; none where none did.
std::optional<trace::Position> moved_in(const Inquiry& inquiry, std::size_t operand, const Positions& constructors,
                                        const void* module) {
  std::optional<trace::LineageNode> move;
  visit_weights(inquiry.search, module, [&](const c10::TensorImpl& weight) {
    if (inquiry.is_wanted(operand, device_slot_of(&weight))) move = newest_move_of(weight);
    return false;
  });
  if (!move) return std::nullopt;
  const Positions calls = call_frames(runtime.recorder->site(move->site).user, move->calls);
  const auto inside = std::ranges::find_if(calls, [&](const auto& call) { return is_in(call, constructors); });
  return inside != calls.end() ? std::optional(*inside) : std::nullopt;
}

// The first module among an object's attributes, beside the one that is kept, that its constructors moved.
class MovedBeside final : public LinkVisitor {
 public:
  MovedBeside(const Inquiry& inquiry, std::size_t operand, const void* kept, const Positions& constructors)
      : inquiry_(inquiry), operand_(operand), kept_(kept), constructors_(constructors) {}

  const std::optional<trace::Position>& at() const { return at_; }
  const std::string& name() const { return name_; }

  bool link(const Link& link, void* object) override {
    const bool attribute = link.kind == LinkKind::attribute || link.kind == LinkKind::child;
    if (!attribute || object == kept_ || !is_torch_module(object)) return true;
    at_ = moved_in(inquiry_, operand_, constructors_, object);
    name_ = link_name(link);
    return !at_;
  }

 private:
  const Inquiry& inquiry_;
  const std::size_t operand_;
  const void* kept_;
  const Positions& constructors_;
  std::optional<trace::Position> at_;
  std::string name_;
};

// `self.teacher = teacher`, `self.teacher = teacher.eval()` of a parameter.
bool keeps_as_given(const trace::Position& stored, const std::string& attribute) {
  SourceFiles files;
  const SourceLines lines(files.whole(stored.file));
  const auto value = assigned_to(statement_at(lines, stored.line), "self." + attribute);
  const int definition = enclosing_line(lines, stored.line, "def ");
  if (!value || definition == 0 || moves(*value)) return false;
  const std::string given = leading_name(*value);
  const bool whole = value->size() == given.size() || (*value)[given.size()] == '.';
  return !given.empty() && given != "self" && whole && parameter_of(statement_at(lines, definition), given);
}

bool find_in(const Inquiry& inquiry, std::size_t operand, const Holding& kept) {
  const Positions constructors = constructors_of(kept.holder);
  if (constructors.empty() || kept.link.name == nullptr) return false;
  MovedBeside beside(inquiry, operand, kept.object, constructors);
  visit_links(const_cast<void*>(kept.holder), beside);
  const auto stored = beside.at() ? attribute_store(inquiry, operand, kept.holder, kept.link.name) : std::nullopt;
  const std::string attribute = link_name(kept.link);
  if (!stored || !is_in(*stored, constructors) || !keeps_as_given(*stored, attribute)) return false;
  inquiry.found.add(trace::EvidenceKind::kept_as_given_at, operand, *stored,
                    std::string(type_name(kept.holder)) + "." + attribute);
  inquiry.found.add(trace::EvidenceKind::kept_beside_moved_at, operand, *beside.at(), beside.name());
  return true;
}

}  // namespace

void find_kept_beside(const Inquiry& inquiry, std::size_t operand) {
  for (const Holding* at : inquiry.owners_of(operand)) {
    const Holding* parent = inquiry.search.parent_module(at->holder);
    if (parent != nullptr && find_in(inquiry, operand, *parent)) return;
    for (const Holding& holding : inquiry.search.holdings_of(at->holder)) {
      if (holding.link.kind == LinkKind::attribute && find_in(inquiry, operand, holding)) return;
    }
  }
}

}  // namespace devsan::hooks
