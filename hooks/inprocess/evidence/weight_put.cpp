// A weight that was put into its module from outside, as adapters, averaged weights and parts of a checkpoint are:
// `setattr(layer, name, nn.Parameter(value))`, `weight.data = value`, `loss.center = checkpoint["center"]`,
// `model.load_state_dict(weights, assign=True)`.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/call_frames.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/interpreter/byte_code.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

constexpr std::array<std::string_view, 5> kMakesAnew = {"clone", "lerp", "to", "mul", "add"};

// Whether it was made apart from any object, as weights are that a server puts in; a layer's own are made with it.
bool made_apart(const trace::OperandRecord& weight) {
  const trace::LineageNode node = runtime.recorder->lineage(weight.lineage);
  if (node.how != trace::How::created) return false;
  const trace::Position user = runtime.recorder->site(node.site).user;
  const auto constructs = [](const trace::Position& at) {
    return runtime.recorder->string(at.function).ends_with("__init__");
  };
  return std::ranges::none_of(call_frames(user, node.calls), constructs);
}

// What a layer makes when it is made, and what Module.to() makes of it, has no other history.
bool has_own_history(const trace::OperandRecord& weight) {
  const trace::LineageNode node = runtime.recorder->lineage(weight.lineage);
  const std::string_view file = runtime.recorder->string(runtime.recorder->site(node.site).innermost.file);
  if (node.how == trace::How::created) return file.ends_with("/torch/_utils.py");  // torch.load() ends there
  const bool by_torch = file.find("/torch/nn/") != file.npos;
  return (node.how == trace::How::derived || node.how == trace::How::moved) && !by_torch;
}

// `loss.center = checkpoint["center"]`: what stands there is handed on, and nothing is computed or called.
bool hands_on(std::string_view line, std::string_view attribute) {
  const std::size_t equals = line.find(" = ");
  if (equals == line.npos || !trimmed(line.substr(0, equals)).ends_with("." + std::string(attribute))) return false;
  const std::string_view value = trimmed(line.substr(equals + 3, line.find('#', equals) - equals - 3));
  const std::size_t call = value.find('(');
  const bool taken =
      call == value.npos || value.substr(0, call).ends_with(".get") || value.substr(0, call).ends_with(".pop");
  return taken && value.find_first_of("+-*/@%&|") == value.npos;
}

// A line that makes anew what it puts there, by a call, stands at the end of the weight's history.
bool may_have_put(const trace::OperandRecord& weight, const trace::Position& at, const std::string& statement) {
  const trace::Position made = runtime.recorder->site(runtime.recorder->lineage(weight.lineage).site).user;
  if (same_line(made, at)) return true;
  const std::size_t equals = statement.find(" = ");
  const std::string_view value = equals != statement.npos ? std::string_view(statement).substr(equals) : statement;
  return !trace::calls_method(value, kMakesAnew);
}

// By its names alone, and then by the text of its line.
bool may_put_weight(const Instruction& one, const Link& weight) {
  if (one.operation != Operation::store_attribute)
    return loads_name(one, "setattr") || loads_name(one, "load_state_dict");
  return is_name(one.operand, "data") || same_name(one.operand, weight.name);
}
bool puts_weight(const Instruction& one, std::string_view line, const Link& weight) {
  if (loads_name(one, "load_state_dict")) return line.find("assign=True") != line.npos;
  if (one.operation != Operation::store_attribute) return line.find("Parameter(") != line.npos;
  return is_name(one.operand, "data") || hands_on(line, written(weight).substr(1));
}

}  // namespace

void find_weight_put(const Inquiry& inquiry, std::size_t operand) {
  const Holding* owner = inquiry.owner_of(operand);
  if (owner == nullptr) return;
  const bool has_history = has_own_history(inquiry.operands[operand]);
  if (!has_history && !made_apart(inquiry.operands[operand])) return;
  SourceFiles files;
  std::vector<Candidate> found;
  for (const void* code : inquiry.own_code.code()) {
    const ByteCode byte_code(code);
    for (const Instruction& one : byte_code.instructions()) {
      if (!may_put_weight(one, owner->link)) continue;
      // What a method makes and stores by its name is its own, and has other evidence.
      if (!has_history && one.operation == Operation::store_attribute) continue;
      const trace::Position at = position_of(code, one.offset);
      if (puts_weight(one, files.line(at.file, at.line), owner->link)) found.push_back({at, true});
    }
  }
  auto at = choose(inquiry, operand, found);
  if (!at) {
    std::erase_if(found, [&](const Candidate& one) {
      const SourceLines lines(files.whole(one.at.file));
      return !may_have_put(inquiry.operands[operand], one.at, statement_at(lines, one.at.line));
    });
    at = choose(inquiry, operand, found);
  }
  if (at) inquiry.found.add(trace::EvidenceKind::weight_put_at, operand, *at, written(owner->link).substr(1));
}

}  // namespace devsan::hooks
