#include "report/model/find_in_call.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "report/model/call_text.h"
#include "report/model/operands.h"
#include "report/model/statement_lines.h"
#include "trace/words.h"

namespace devsan::report {
namespace {

constexpr std::size_t kLongestName = 80;

// A part of the call, and not all of it: in a loop the operand may be what the same call made the last time.
bool is_part_of(const Frame& part, const Frame& call) {
  if (part.file != call.file || part.function != call.function) return false;
  const auto begin = [](const Frame& frame) { return std::pair(frame.line, frame.column); };
  const auto end = [](const Frame& frame) { return std::pair(frame.end_line, frame.end_column); };
  const bool within = begin(part) >= begin(call) && end(part) <= end(call);
  return within && (begin(part) != begin(call) || end(part) != end(call));
}

bool is_list_member(const Operand& operand) {
  return operand.arg.find('[') != std::string::npos;
}

void locate(Operand& operand, std::string_view text) {
  if (!operand.text.empty() || text.empty()) return;
  operand.text = text;
  if (!operand.name.empty() || text.size() > kLongestName) return;
  operand.name = text;
  const bool computed = text.find_first_of("([ ") != text.npos;
  if (operand.is == trace::NameKind::unknown && computed) operand.is = trace::NameKind::temporary;
}

// What was computed within the call itself knows its own place there.
void locate_by_history(Finding& finding) {
  for (Operand& operand : finding.operands) {
    if (operand.lineage.empty() || (!operand.name.empty() && operand.is != trace::NameKind::temporary)) continue;
    const Frame& made = operand.lineage.front().at;
    if (is_part_of(made, *finding.where)) locate(operand, call_text_of(made));
  }
}

// Operands and arguments that have not found each other yet.
class Matching {
 public:
  explicit Matching(std::vector<Operand>& operands) {
    for (Operand& operand : operands) {
      if (!operand.number && !operand.device_argument) operands_.push_back(&operand);
    }
  }

  // False where the arguments are not all there to be seen.
  bool take_arguments(const CallText& call) {
    for (const ArgumentText& argument : call.arguments) {
      if (argument.text.starts_with('*')) return false;
      if (is_literal(argument.text)) continue;
      if (argument.keyword.empty()) {
        arguments_.push_back(argument.text);
      } else if (const auto found = find(argument.keyword, &Operand::arg); found != operands_.end()) {
        locate(**found, argument.text);
        operands_.erase(found);
      } else {
        return false;
      }
    }
    return true;
  }

  // A method's receiver is its `self`; the receiver of a function is a module, which is never called or subscripted.
  void take_receiver(const CallText& call) {
    if (call.receiver.empty() || operands_.empty() || operands_.front()->arg != "self") return;
    const bool is_value = call.subscript || operands_.front()->name == call.receiver ||
                          call.receiver.find_first_of("([") != call.receiver.npos ||
                          operands_.size() == arguments_.size() + 1;
    if (!is_value) return;
    locate(*operands_.front(), call.receiver);
    operands_.erase(operands_.begin());
  }

  void take_equal_names() {
    std::erase_if(arguments_, [&](std::string_view argument) {
      const auto found = find(argument, &Operand::name);
      if (found == operands_.end()) return false;
      locate(**found, argument);
      operands_.erase(found);
      return true;
    });
  }

  // The members of a list take the elements of a list display that has as many.
  void take_displays() {
    std::erase_if(arguments_, [&](std::string_view argument) {
      const auto elements = split_display(argument);
      const auto is_member = [](const Operand* operand) { return is_list_member(*operand); };
      if (!elements || std::ranges::count_if(operands_, is_member) != std::ssize(*elements)) return false;
      auto element = elements->begin();
      for (Operand* operand : operands_) {
        if (is_list_member(*operand)) locate(*operand, *element++);
      }
      std::erase_if(operands_, is_member);
      return true;
    });
  }

  void take_rest() {
    if (operands_.size() != arguments_.size()) return;
    for (std::size_t i = 0; i < operands_.size(); ++i) locate(*operands_[i], arguments_[i]);
  }

 private:
  std::vector<Operand*>::iterator find(std::string_view text, std::string Operand::*member) {
    return std::ranges::find_if(operands_, [&](const Operand* operand) { return operand->*member == text; });
  }

  std::vector<Operand*> operands_;
  std::vector<std::string_view> arguments_;
};

void locate_by_arguments(std::vector<Operand>& operands, const CallText& call) {
  Matching matching(operands);
  if (!matching.take_arguments(call)) return;
  matching.take_receiver(call);
  if (!call.subscript) matching.take_displays();
  matching.take_equal_names();
  matching.take_rest();
}

void locate_by_sides(std::vector<Operand>& operands, const BinaryText& sides) {
  if (operands.size() != 2) return;
  const bool reflected = operands[0].name == sides.right || operands[1].name == sides.left;
  locate(operands[0], reflected ? sides.right : sides.left);
  locate(operands[1], reflected ? sides.left : sides.right);
}

void locate_operands(Finding& finding) {
  locate_by_history(finding);
  // Only a call that went to the operator itself has its operands for arguments: not one that a module of torch made,
  // nor one in a script or an extension.
  const bool direct = !finding.stack.empty() && !finding.stack.front().torch;
  const auto made_inside = [&](const Operand& operand) { return is_made_inside_call(operand, finding); };
  if (!direct || std::ranges::any_of(finding.operands, made_inside)) return;
  const std::string_view text = call_text_of(*finding.where);
  if (const auto sides = split_binary(text)) {
    locate_by_sides(finding.operands, *sides);
  } else if (const auto call = split_call(text)) {
    locate_by_arguments(finding.operands, *call);
  }
}

// "x" of "x.weight[0]"
std::string_view variable_of(std::string_view name) {
  const auto end = std::ranges::find_if_not(name, trace::is_word);
  return name.substr(0, static_cast<std::size_t>(end - name.begin()));
}

}  // namespace

void find_in_call(Finding& finding) {
  if (!finding.where || call_text_of(*finding.where).empty()) return;
  locate_operands(finding);
  const std::string_view line = finding.where->statement();
  for (Operand& operand : finding.operands) {
    operand.spoken = find_name(line, variable_of(operand.name)) != line.npos;
  }
}

}  // namespace devsan::report
