// `Exporter(policy).to("cpu")`: an object that nobody keeps has moved what it was given. It is gone by the time that an
// operator fails; the constructor of its class still says what it has kept of its arguments.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/module_weights.h"
#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

// "Exporter" of `Exporter(policy).to("cpu")`; empty where the call is made on something that has a name.
std::string class_called(std::string_view text) {
  const auto move = call_text(text);
  if (!move) return "";
  const std::string_view receiver = std::string_view(move->callee).substr(0, move->callee.rfind('.'));
  const auto made = call_text(receiver);
  return made && is_identifier(made->callee) ? made->callee : std::string();
}

// The `def __init__` of a class in the file; 0 without one.
int constructor_in(const SourceLines& lines, const std::string& type) {
  for (int k = 1; k <= lines.count(); ++k) {
    const int around = function_defined(lines[k]) == "__init__" ? enclosing_line(lines, k, "class ") : 0;
    if (around != 0 && defined_name(lines[around], "class ") == type) return k;
  }
  return 0;
}

// Whether a value is an argument itself, or a part of it: "policy", "policy[0]", "policy.actor.cnn".
bool is_part_of_argument(std::string_view value, std::string_view definition) {
  const std::string name = leading_name(value);
  const std::string_view argument = std::string_view(name).substr(0, name.find('.'));
  return !argument.empty() && argument != "self" && is_path(value) && parameter_of(definition, argument).has_value();
}

}  // namespace

void find_given_to_temporary(const Inquiry& inquiry, std::size_t operand) {
  const auto is_known = [operand](const trace::EvidenceRecord& one) {
    return one.kind == trace::EvidenceKind::module_shared_at && one.operand == operand;
  };
  if (inquiry.owner_of(operand) == nullptr || std::ranges::any_of(inquiry.found.records(), is_known)) return;
  const c10::TensorImpl* weight = inquiry.search.tensor_at(inquiry.viewed_by(operand));
  const auto move = weight != nullptr ? newest_move_of(*weight) : std::nullopt;
  if (!move) return;
  const trace::Position at = runtime.recorder->site(move->site).user;
  SourceFiles files;
  const SourceLines lines(files.whole(at.file));
  const std::string type = class_called(code_text(lines, at));
  const int constructor = type.empty() ? 0 : constructor_in(lines, type);
  if (constructor == 0) return;
  const std::string definition = statement_at(lines, constructor);
  std::optional<int> kept;
  std::string value;
  for (int k = constructor + 1; k <= end_of_block(lines, constructor + 1, constructor); ++k) {
    const std::string statement = is_blank(lines[k]) ? std::string() : statement_at(lines, k);
    const std::size_t equals = statement.starts_with("self.") ? equals_of(statement) : statement.npos;
    if (equals == statement.npos) continue;
    const std::string_view stored = trimmed(std::string_view(statement).substr(equals + 1));
    if (!is_part_of_argument(stored, definition)) continue;
    if (kept) return;
    kept = k;
    value = stored;
  }
  if (!kept) return;
  inquiry.found.add(trace::EvidenceKind::module_shared_at, operand,
                    position_at(at.file, *kept, qualified_function(lines, *kept)), value);
}

}  // namespace devsan::hooks
