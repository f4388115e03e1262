// Where the variable that an operand goes by got its value.
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/waiting_calls.h"
#include "hooks/inprocess/interpreter/byte_code.h"
#include "hooks/inprocess/interpreter/python_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/interpreter/variable_stores.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/snapshot/named_objects.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxFrames = 24;

struct Variable {
  const void* frame = nullptr;
  const void* name = nullptr;
  bool global = false;
};

const void* globals_of(const void* frame) noexcept {
  return frame_reference(frame, frame_layout.globals);
}

// A variable of a frame that is bound to an object.
class FindVariable final : public LinkVisitor {
 public:
  FindVariable(const void* frame, const void* object) : object_(object) {
    // The variables of a module's body are its globals.
    const bool body = is_module_body(frame_code(frame));
    visit_frame(frame, body, *this);
    if (found_.name != nullptr) found_.frame = frame;
  }
  const Variable& found() const { return found_; }
  bool link(const Link& link, void* object) override {
    if (object != object_ || link.name == nullptr) return true;
    found_ = {nullptr, link.name, link.kind == LinkKind::global};
    return false;
  }

 private:
  const void* object_;
  Variable found_;
};

// The nearest function of the program that waits for `frame` and has the object in a variable.
Variable in_callers(const void* frame, const void* object) {
  for (frame = caller_of(frame); frame != nullptr; frame = caller_of(frame)) {
    const FindVariable search(frame, object);
    if (search.found().name != nullptr) return search.found();
  }
  return {};
}

void add_stores(std::vector<Candidate>& candidates, const void* code, const std::vector<int>& offsets, bool certain) {
  for (const int offset : offsets) candidates.push_back({position_of(code, offset), certain});
}

// Stores of a shared local by the functions that are defined inside.
void add_inner_stores(std::vector<Candidate>& candidates, const void* code, const void* name, int depth) {
  const void* constants = code_constants(code);
  if (constants == nullptr || !is_tuple(constants) || depth > 4) return;
  for (std::ptrdiff_t k = 0; k < size_of(constants); ++k) {
    const void* inner = field<const void*>(constants, kTupleItems + k * static_cast<std::ptrdiff_t>(sizeof(void*)));
    if (inner == nullptr || type_of(inner) != python.code_type) continue;
    add_stores(candidates, inner, all_stores(ByteCode(inner), Operation::store_cell, name), true);
    add_inner_stores(candidates, inner, name, depth + 1);
  }
}

void add_global_stores(std::vector<Candidate>& candidates, const Inquiry& inquiry, const Variable& variable) {
  const void* file = field<const void*>(frame_code(variable.frame), code_members.filename);
  for (const void* code : inquiry.own_code.code()) {
    if (!same_name(field<const void*>(code, code_members.filename), file) || !mentions(code, variable.name)) continue;
    add_stores(candidates, code, all_stores(ByteCode(code), Operation::store_global, variable.name), true);
  }
}

struct Stores {
  std::vector<Candidate> candidates;
  bool handed_in = false;  // nothing in the function stores it: an argument, or a variable of a function around
};

Stores stores_of(const Inquiry& inquiry, const Variable& variable) {
  Stores binding;
  const void* frame = variable.global ? module_frame(variable.frame) : variable.frame;
  if (frame != nullptr) {
    const void* code = frame_code(frame);
    const ReachingStores stores = stores_reaching(ByteCode(code), frame_instruction(frame, code), variable.name);
    add_stores(binding.candidates, code, stores.offsets, !stores.from_start);
    if (!variable.global) add_inner_stores(binding.candidates, code, variable.name, 0);
  }
  if (variable.global) {
    add_global_stores(binding.candidates, inquiry, variable);
    // What the body of a module did that has ended is not known.
    for (Candidate& one : binding.candidates) one.certain = one.certain && frame != nullptr;
  }
  binding.handed_in = !variable.global && binding.candidates.empty();
  return binding;
}

// The statement that is running has stored nothing yet. In an earlier pass of a loop it may have, but then the value is
// what an operator on this line made.
void leave_out_running_statement(std::vector<Candidate>& candidates, const Inquiry& inquiry, std::size_t operand,
                                 const void* frame) {
  if (frame != inquiry.innermost) return;
  const void* code = frame_code(frame);
  const trace::Position now = position_of(code, frame_instruction(frame, code));
  const trace::LineageNode made = runtime.recorder->lineage(inquiry.operands[operand].lineage);
  const trace::Position site = runtime.recorder->site(made.site).user;
  if (site.file == now.file && site.function == now.function && site.line == now.line) return;
  std::erase_if(candidates, [&now](const Candidate& one) {
    return one.at.file == now.file && one.at.function == now.function && one.at.line == now.line;
  });
}

}  // namespace

const void* module_frame(const void* frame) noexcept {
  const void* globals = globals_of(frame);
  for (int depth = 0; frame != nullptr && depth < 256; ++depth, frame = frame_previous(frame)) {
    if (runs_python(frame) && globals_of(frame) == globals && is_module_body(frame_code(frame))) return frame;
  }
  return nullptr;
}

std::optional<Binding> binding_of(const Inquiry& inquiry, std::size_t operand, const void* frame,
                                  std::string_view variable) {
  const auto place = variable_place(frame, variable);
  return place ? binding_at(inquiry, operand, *place) : std::nullopt;
}

Bindings bindings_at(const Inquiry& inquiry, std::size_t operand, const Place& root) {
  Variable variable{root.frame, root.link.name, root.link.kind == LinkKind::global};
  for (int hops = 0; variable.name != nullptr && hops < kMaxFrames; ++hops) {
    Stores stores = stores_of(inquiry, variable);
    if (!stores.handed_in) {
      leave_out_running_statement(stores.candidates, inquiry, operand, variable.frame);
      return {variable.frame, text_of(variable.name), std::move(stores.candidates)};
    }
    variable = in_callers(variable.frame, root.object);
  }
  return {};
}

std::optional<Binding> binding_at(const Inquiry& inquiry, std::size_t operand, const Place& root) {
  Bindings bindings = bindings_at(inquiry, operand, root);
  const auto position = choose(inquiry, operand, bindings.lines);
  return position ? std::optional(Binding{*position, std::move(bindings.name)}) : std::nullopt;
}

void find_binding(const Inquiry& inquiry, std::size_t operand) {
  // An entry is put where its list or dictionary is known; an attribute is another matter.
  const std::uint32_t at = inquiry.search.variable_behind(inquiry.search.sighting(operand).place);
  if (at == kNoPlace) return;
  if (const auto binding = binding_at(inquiry, operand, inquiry.search.place(at))) {
    inquiry.found.add(trace::EvidenceKind::bound_at, operand, binding->at, binding->name);
  }
}

}  // namespace devsan::hooks
