#include "report/slice/slice.h"

#include <algorithm>
#include <array>

#include "report/program/positions.h"
#include "report/slice/code.h"
#include "report/slice/history.h"
#include "report/slice/program_places.h"
#include "report/slice/slicer.h"
#include "report/slice/torch_names.h"

namespace devsan::report::slice {

using program::Field;
using program::Kind;
using program::Node;

namespace {

constexpr std::size_t kMethodsRunning = 4;  // whose objects are followed, of an operand that an object holds
constexpr std::size_t kFunctionsRunning = 3;
constexpr std::size_t kStepsOfHistory = 10;

// Without spaces, and with one kind of quotes: how a name is compared with the text that it stands for.
std::string plain(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == ' ' || c == '\n' || c == '\t' || c == '\\') continue;
    result += c == '"' ? '\'' : c;
  }
  return result;
}

bool is_expression(Node node) {
  return node && !node.is(Kind::Token) && !node.is(Kind::Comment) && !program::is_statement(node);
}

// The outermost nodes in `within` of that text.
Nodes find(std::string_view wanted, Node within) {
  Nodes found;
  for (std::uint32_t index = within.index(); index < within.subtree_end();) {
    const Node node = within.file().node(index);
    if (is_expression(node) && plain(node.text()) == wanted) {
      found.push_back(node);
      index = node.subtree_end();
    } else {
      ++index;
    }
  }
  return found;
}

bool is_part_of_module(const Operand& operand) {
  return operand.is == trace::NameKind::parameter || operand.is == trace::NameKind::buffer;
}

struct Root {
  Node node;
  Aspect aspect;
};

// Where the failing line has the operand: by its text, by its name, by as much of the name as is written there.
std::vector<Root> roots_of(const Operand& operand, Node failing) {
  const Node statement = program::statement_of(failing);
  const auto search = [&](std::string_view text) {
    Nodes found = find(text, failing);
    if (found.empty() && statement) found = find(text, statement);
    return found;
  };
  std::vector<Root> roots;
  for (const std::string& text : {operand.text, operand.name}) {
    if (text.empty()) continue;
    for (const Node node : search(plain(text))) roots.push_back({node, Aspect::value});
    if (!roots.empty()) return roots;
  }
  std::string name = plain(operand.name);
  for (std::size_t cut = name.find_last_of(".["); cut != std::string::npos; cut = name.find_last_of(".[")) {
    const bool entry = name[cut] == '[';
    name.resize(cut);
    if (name == "self" || name.empty()) return roots;
    const Aspect aspect = entry && !is_part_of_module(operand) ? Aspect::value : Aspect::module;
    for (const Node node : search(name)) roots.push_back({node, aspect});
    if (!roots.empty()) return roots;
  }
  return roots;
}

// "net.body.weight": body, weight.
std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts;
  std::size_t begin = name.find('.');
  while (begin != std::string::npos) {
    const std::size_t end = name.find('.', begin + 1);
    std::string part = name.substr(begin + 1, end == std::string::npos ? end : end - begin - 1);
    const bool identifier = !part.empty() && std::ranges::all_of(part, [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '_' || c >= 0x80;
    }) && std::isdigit(static_cast<unsigned char>(part.front())) == 0;
    if (identifier) parts.push_back(std::move(part));
    begin = end;
  }
  return parts;
}

class OperandSlice {
 public:
  OperandSlice(const Finding& finding, const Operand& operand, Side side, const Code& code)
      : finding_(finding), operand_(operand), code_(code), side_(side), slicer_(code, operand, side) {}

  std::vector<Place> run() {
    from_use();
    from_objects();
    slicer_.run();
    mark_ways();
    from_history();
    slicer_.run();
    std::vector<Place> places = slicer_.take();
    add_history(places);
    return places;
  }

 private:
  void from_use() {
    const Node failing = finding_.where ? code_.node_at(*finding_.where) : Node();
    if (!failing) return;
    const std::vector<Root> roots = roots_of(operand_, failing);
    for (const Root& root : roots) {
      slicer_.add(root.node, Role::used, 0, root.aspect);
      slicer_.push(root.node, 0, root.aspect);
      if (root.aspect != Aspect::module) continue;
      for (const std::string& part : parts_of(operand_.name)) slicer_.attribute_named(part, 2, Aspect::value);
    }
    if (!roots.empty()) return;
    const Aspect aspect = is_part_of_module(operand_) ? Aspect::module : Aspect::value;
    const program::CallParts call = program::call_parts(failing);
    if (!call) {
      for (const Node child : failing.children()) slicer_.push(child, 1, aspect);
      return;
    }
    slicer_.push(call.callee, 1, aspect);
    for (const Node argument : call.positional) slicer_.push(argument, 1, aspect);
  }

  // An operand that an object holds: the objects whose methods are running.
  void from_objects() {
    const bool held = is_part_of_module(operand_) || operand_.is == trace::NameKind::attribute;
    for (std::size_t k = 0; k < finding_.stack.size() && k < kMethodsRunning; ++k) {
      const Node function = code_.function_at(finding_.stack[k]);
      if (!function) continue;
      const double distance = static_cast<double>(k);
      if (held && program::class_of_method(function)) slicer_.object_of_method(function, distance + 1);
      if (k < kFunctionsRunning) slicer_.references_to(function, distance + 3, Aspect::value);
    }
  }

  // The step's own position, or the innermost call around it that the code has.
  const Frame* in_code(const LineageStep& step) const {
    if (code_.file(step.at.file) != nullptr) return &step.at;
    const auto found =
        std::ranges::find_if(step.calls, [&](const Frame& call) { return code_.file(call.file) != nullptr; });
    return found == step.calls.end() ? nullptr : &*found;
  }

  void mark_ways() {
    const LineageStep* step = deciding_step(operand_);
    const Frame* frame = step == nullptr ? nullptr : in_code(*step);
    if (frame == nullptr) return;
    const Node exact = frame->column >= 0 ? code_.node_at(*frame) : Node();
    slicer_.mark_ways_to(code_.file(frame->file)->file(), frame->line, [&](Node node) {
      if (node == exact) return true;
      if (!node.is(Kind::Call)) return false;
      const std::string_view name = called_name(node);
      return step->how == trace::How::created ? makes_tensor(name) : moves(name);
    });
  }

  // Steps of the history are followed as well: the way to them may lie where no text leads.
  void from_history() {
    for (std::size_t k = 0; k < operand_.lineage.size() && k < kStepsOfHistory; ++k) {
      const LineageStep& step = operand_.lineage[k];
      const FileIndex* index = code_.file(step.at.file);
      if (index == nullptr) continue;
      const double distance = 1 + 0.3 * static_cast<double>(k);
      const Node exact = step.at.column >= 0 ? program::without_parentheses(code_.node_at(step.at)) : Node();
      for (const Node call : index->all_calls()) {
        const program::Range range = call.range();
        if (step.at.line < range.line || range.end_line < step.at.line || (exact && call != exact)) continue;
        const std::string_view name = called_name(call);
        const bool created = step.how == trace::How::created;
        if ((created && makes_tensor(name)) || (step.how == trace::How::moved && moves(name))) {
          slicer_.push(call, distance, Aspect::value);
          slicer_.conditions_of(call, distance + 1, Aspect::value);
        } else if (created && makes_layer(call.child(Field::Function))) {
          slicer_.push(call, distance, Aspect::module);
        }
      }
    }
  }

  void add_history(std::vector<Place>& places) const {
    const auto add = [&](const Frame& frame, Role role, std::size_t distance) {
      const FileIndex* index = code_.file(frame.file);
      const Node statement = index == nullptr ? Node() : program::node_at(index->file(), {frame.line, -1, -1, -1});
      if (!statement) return;
      const Node node = frame.column >= 0 ? code_.node_at(frame) : statement;
      places.push_back({node, role, Aspect::value, side_, static_cast<double>(distance), node});
    };
    for (std::size_t k = 0; k < operand_.lineage.size() && k < kStepsOfHistory; ++k) {
      const LineageStep& step = operand_.lineage[k];
      const Role role = step.how == trace::How::created ? Role::history_created
                        : step.how == trace::How::moved ? Role::history_moved
                                                        : Role::history_derived;
      add(step.at, role, k);
      for (std::size_t j = 0; j < step.calls.size(); ++j) add(step.calls[j], Role::history_called, k + j);
    }
  }

  const Finding& finding_;
  const Operand& operand_;
  const Code& code_;
  Side side_;
  Slicer slicer_;
};

// Which operands are suspects: what PyTorch's message makes odd, or those on the host, or all.
std::vector<bool> suspects(const std::vector<Operand>& operands) {
  std::vector<bool> odd;
  for (const Operand& operand : operands) odd.push_back(operand.odd);
  const auto any_odd = std::ranges::count(odd, true);
  for (std::size_t k = 0; k < odd.size() && any_odd == 0; ++k) odd[k] = operands[k].on_cpu();
  if (std::ranges::find(odd, true) == odd.end()) odd.assign(odd.size(), true);
  return odd;
}

void add_stack(const Finding& finding, const Code& code, std::vector<Place>& places) {
  double distance = 0;
  for (const Frame& frame : finding.stack) {
    if (code.file(frame.file) == nullptr) continue;
    const Node node = code.node_at(frame);
    if (node) places.push_back({node, Role::on_stack, Aspect::value, Side::program, distance, node});
    distance += 1;
  }
}

constexpr std::array<std::string_view, kRoles> kNames{
#define DEVSAN_ROLE(name, sentence) #name,
#include "report/slice/roles.def"
#undef DEVSAN_ROLE
};

constexpr std::array<std::string_view, kRoles> kSentences{
#define DEVSAN_ROLE(name, sentence) sentence,
#include "report/slice/roles.def"
#undef DEVSAN_ROLE
};

}  // namespace

std::string_view name_of(Role role) {
  return kNames[static_cast<std::size_t>(role)];
}

std::string_view sentence_of(Role role) {
  return kSentences[static_cast<std::size_t>(role)];
}

bool binds_value(Role role) {
  switch (role) {
    case Role::bound:
    case Role::stored:
    case Role::entered:
    case Role::field:
    case Role::argument:
    case Role::default_used:
      return true;
    default:
      return false;
  }
}

std::vector<Place> slice_of(const Finding& finding, const Code& code) {
  std::vector<Place> places;
  const std::vector<bool> odd = suspects(finding.operands);
  for (std::size_t k = 0; k < finding.operands.size(); ++k) {
    const Side side = odd[k] ? Side::odd : Side::other;
    std::vector<Place> some = OperandSlice(finding, finding.operands[k], side, code).run();
    places.insert(places.end(), some.begin(), some.end());
  }
  add_stack(finding, code, places);
  const std::vector<Place> everywhere = program_places(code);
  places.insert(places.end(), everywhere.begin(), everywhere.end());
  return places;
}

}  // namespace devsan::report::slice
