// Hooks that bring over what a module is called with, or its weights, and that this module has not: a loop registered
// them on others, a condition kept the program from it, or they have been removed.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/module_weights.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/source/python_results.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"
#include "trace/function_names.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

constexpr std::string_view kRegister = "register_forward_pre_hook";
constexpr std::size_t kMaxModules = 5000;

bool has_hooks(const void* module) {
  return !input_hooks_of(module).empty();
}

// The only line of the program on which a method of this name is called.
std::optional<trace::Position> only_call(const Inquiry& inquiry, std::string_view method) {
  const std::string call = "." + std::string(method) + "(";
  return only_load(inquiry, method, [&call](std::string_view line) { return line.find(call) != line.npos; });
}

// "align" of `module.register_forward_pre_hook(align)`; "lambda …" of one that is written there.
std::string hook_given(std::string_view statement) {
  constexpr std::string_view kLambda = "lambda";
  const std::size_t open = call_in(statement, kRegister);
  if (open == statement.npos) return "";
  const std::string_view given = statement.substr(open + kRegister.size());
  const std::size_t closing = closing_of(given, 0);
  if (closing == given.npos) return "";
  const std::string_view inside = trimmed(given.substr(1, closing - 1));
  return std::string(inside.starts_with(kLambda) ? inside : inside.substr(0, end_of_expression(inside, 0)));
}

// What the owner of a weight has, or has not, to bring its input over.
class MissingHook {
 public:
  MissingHook(const Inquiry& inquiry, std::size_t operand, const trace::Position& registered)
      : inquiry_(inquiry),
        operand_(operand),
        registered_(registered),
        lines_(files_.whole(registered.file)),
        hook_(hook_given(statement_at(lines_, registered.line))) {}

  void look_at(const std::vector<const Holding*>& owners, const c10::TensorImpl* weight) {
    if (!hook_moves()) return;
    const int condition = condition_around(lines_, registered_.line);
    const void* root = owners.back()->holder;
    if (std::ranges::any_of(modules_below(root, kMaxModules), has_hooks)) {
      if (condition != 0) add(condition, "skipped");
    } else if (condition != 0 && weight != nullptr && is_moved_beside(*weight)) {
      add(condition, "not registered");
    } else if (const auto removed = is_copied_by_hook() ? only_call(inquiry_, "remove") : std::nullopt) {
      inquiry_.found.add(trace::EvidenceKind::hook_missing_at, operand_, *removed, "removed");
    }
  }

 private:
  void add(int line, std::string_view how) {
    inquiry_.found.add(trace::EvidenceKind::hook_missing_at, operand_,
                       position_at(registered_.file, line, qualified_function(lines_, line)), how);
  }

  bool hook_moves() const {
    constexpr std::array<std::string_view, 3> kMoves = {"to", "cuda", "copy_"};
    if (is_lambda()) return trace::calls_method(hook_, kMoves);
    const int definition = definition_called(lines_, registered_.line, hook_);
    const int end = definition != 0 ? end_of_block(lines_, definition + 1, definition) : 0;
    for (int k = definition + 1; k <= end; ++k) {
      if (trace::calls_method(lines_[k], kMoves)) return true;
    }
    return false;
  }

  bool is_lambda() const { return hook_.starts_with("lambda"); }

  // The function that would register hooks has moved the weight.
  bool is_moved_beside(const c10::TensorImpl& weight) const {
    const auto move = newest_move_of(weight);
    return move && same_function(runtime.recorder->site(move->site).user, registered_);
  }

  // An earlier call of the module had the hook copy the operand.
  bool is_copied_by_hook() const {
    return std::ranges::any_of(inquiry_.found.records(), [&](const trace::EvidenceRecord& one) {
      if (one.kind != trace::EvidenceKind::copied_away || one.operand != operand_) return false;
      const std::string_view function = trace::function_around(runtime.recorder->string(one.at.function));
      return trace::own_name(function) == hook_.substr(hook_.rfind('.') + 1) ||
             (is_lambda() && one.at.line == registered_.line);
    });
  }

  const Inquiry& inquiry_;
  const std::size_t operand_;
  const trace::Position registered_;
  SourceFiles files_;
  const SourceLines lines_;
  const std::string hook_;
};

// The operand that is a weight: this one, or else the first.
std::optional<std::size_t> weight_among(const Inquiry& inquiry, std::size_t operand) {
  if (inquiry.owner_of(operand) != nullptr) return operand;
  for (std::size_t k = 0; k < inquiry.operands.size(); ++k) {
    if (inquiry.owner_of(k) != nullptr) return k;
  }
  return std::nullopt;
}

}  // namespace

void find_missing_hook(const Inquiry& inquiry, std::size_t operand) {
  const auto weight = weight_among(inquiry, operand);
  if (!weight) return;
  const std::vector<const Holding*> owners = inquiry.owners_of(*weight);
  if (std::ranges::any_of(owners, [](const Holding* one) { return has_hooks(one->holder); })) return;
  const auto registered = only_call(inquiry, kRegister);
  if (!registered) return;
  MissingHook(inquiry, operand, *registered).look_at(owners, inquiry.search.tensor_at(inquiry.viewed_by(*weight)));
}

}  // namespace devsan::hooks
