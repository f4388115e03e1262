// What can be found out about the operands of an operator that PyTorch refused, beside their names and histories: who
// holds them, and which lines of the program put them there (trace/evidence_kinds.def).
//
// Nothing is said that is not certain: where two assignments may have stored a value, and its history tells of neither,
// there is no evidence. With the GIL (PythonSection); bounded; runs no code of the program. May throw std::bad_alloc.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/bridge/copies.h"
#include "hooks/inprocess/snapshot/object_search.h"
#include "hooks/inprocess/snapshot/own_code.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

class EvidenceList {
 public:
  // Dropped when it is said already, or when there is no more room.
  void add(trace::EvidenceKind kind, std::size_t operand, const trace::Position& at, std::string_view text) noexcept;
  std::span<const trace::EvidenceRecord> records() const noexcept { return {records_.data(), count_}; }

 private:
  std::array<trace::EvidenceRecord, 64> records_{};
  std::size_t count_ = 0;
};

// One finding, and what is known of it so far.
struct Inquiry {
  const void* innermost;  // frame
  trace::SiteId site;     // of the operator
  const ObjectSearch& search;
  std::span<const trace::OperandRecord> operands;
  std::span<const OperandIdentity> identities;
  const OwnCode& own_code;
  EvidenceList& found;

  // The object that an operand stands for: the tensor that it was made from, where it is a temporary; else itself.
  const void* object_of(std::size_t operand) const {
    const Sighting& sighting = search.sighting(operand);
    return sighting.base ? search.place(sighting.place).object : identities[operand].object;
  }

  // The same of a view alone, as `self.inv_freq[None, :]` is; of what was computed it is itself.
  const void* viewed_by(std::size_t operand) const;

  // The tensor that torch.func has wrapped for the function that failed, where the program keeps it; else null.
  const void* wrapped_object(std::size_t operand) const;

  // The history of that which the program keeps: of the tensor that an operand was computed from in the statement that
  // failed, where it is such a temporary; or its own.
  trace::LineageId kept_history(std::size_t operand) const;

  // Who has an operand, or what it is a view of, among its parameters or buffers; null where nobody has.
  const Holding* owner_of(std::size_t operand) const { return search.owner(viewed_by(operand)); }
  // That, and the modules around it, from the inside.
  std::vector<const Holding*> owners_of(std::size_t operand) const { return search.outwards(owner_of(operand)); }

  // Whether an operand would have met another one on this device, where it is not itself.
  bool is_wanted(std::size_t operand, trace::DeviceSlot device) const noexcept {
    return device != operands[operand].device &&
           std::ranges::any_of(operands, [device](const auto& other) { return other.device == device; });
  }

  // Whether NumPy asked for an operand's memory.
  bool is_for_numpy() const;
};

bool all_on_accelerators(const Inquiry& inquiry);

// The parameter or buffer that an operand is, shares its memory with, or was computed from; null without one.
const Holding* weight_behind(const Inquiry& inquiry, std::size_t operand);

bool same_line(const trace::Position& a, const trace::Position& b) noexcept;
bool same_function(const trace::Position& a, const trace::Position& b) noexcept;

// Where something may have been stored. `certain`: nothing but the instruction's own effect is assumed.
struct Candidate {
  trace::Position at;
  bool certain;
};
// The only one, if it is certain; else the one on whose line the operand's value was made.
std::optional<trace::Position> choose(const Inquiry& inquiry, std::size_t operand,
                                      const std::vector<Candidate>& candidates);

// The same among those that make nothing of what they give: a line that makes it would stand in the operand's history.
std::optional<trace::Position> choose_giver(const Inquiry& inquiry, std::size_t operand,
                                            std::vector<Candidate> candidates);

// The lists and dicts that keep an object as an entry, each with an attribute that keeps it.
struct KeptList {
  Holding entry;
  Holding attribute;
};
std::vector<KeptList> lists_with(const Inquiry& inquiry, const void* object);

// The lines that may have stored attribute `name` of `holder`, and the one that has.
std::vector<Candidate> attribute_stores(const Inquiry& inquiry, const void* holder, const void* name);
std::optional<trace::Position> attribute_store(const Inquiry& inquiry, std::size_t operand, const void* holder,
                                               const void* name);

// Of the lines that may have stored attribute `name`, for an operand that is as it was loaded: the only one that takes
// an entry out of what its function was given or has loaded, as `self.best = state["best"]` does.
std::optional<trace::Position> taken_as_loaded(const Inquiry& inquiry, std::size_t operand,
                                               const std::vector<Candidate>& candidates, const void* name);

// Where the variable at a root of the search got its value, and its name: followed to the caller's from an argument.
struct Binding {
  trace::Position at;
  std::string name;
};
std::optional<Binding> binding_at(const Inquiry& inquiry, std::size_t operand, const Place& root);
// All lines that may have given it that value, in a function that has not returned; empty where there is none.
struct Bindings {
  const void* frame = nullptr;
  std::string name;
  std::vector<Candidate> lines;
};
Bindings bindings_at(const Inquiry& inquiry, std::size_t operand, const Place& root);
// The same of a variable that a running function sees by this name.
std::optional<Binding> binding_of(const Inquiry& inquiry, std::size_t operand, const void* frame,
                                  std::string_view variable);

// The frame that runs the body of the module that `frame` belongs to; null where that has ended.
const void* module_frame(const void* frame) noexcept;

// The function of the program that a call was made from, or from a comprehension in it; null where its code cannot be
// reached.
const void* code_at(const Inquiry& inquiry, const trace::Position& position);

// The only function of the program that goes by this name, as a code object; null where several do.
const void* only_function(const Inquiry& inquiry, std::string_view name);

// The only line of the program that loads a variable or an attribute of this name, of those whose source text is
// accepted; none where several do.
std::optional<trace::Position> only_load(const Inquiry& inquiry, std::string_view name,
                                         const std::function<bool(std::string_view line)>& accepts = nullptr);

// Shows the lines on which one of these functions loads a variable or an attribute of this name, until `visit` says
// false. False where it did.
bool visit_loads(const std::vector<const void*>& code, std::string_view name,
                 const std::function<bool(const trace::Position& at)>& visit);

bool is_torch_module(const void* object) noexcept;

// The constructors of an object's class and of what that is derived from, without torch's: where they begin.
std::vector<trace::Position> constructors_of(const void* object);
// The call that led through one of them to the making of a value, the outermost of several; none where none is known.
std::optional<trace::Position> constructing_call(const trace::LineageNode& made, const void* object);

// Whether a module's method made a copy there: nn.Module.to(), cuda(), cpu() and their kin all end in _apply().
bool by_module(const trace::Site& site);

// The line that puts an operand, or what it was computed from, into the dictionary that holds it; none where several
// do.
std::optional<trace::Position> dict_store(const Inquiry& inquiry, std::size_t operand);

// The line that puts an object into a list, dictionary or set that an attribute keeps; none where several may have.
std::optional<trace::Position> container_put(const Inquiry& inquiry, std::size_t operand, const void* object);

// The lines that may put something into the container that an attribute of this name keeps, or into its entries; of
// those by a constant key only those by `key`, where that is not empty.
std::vector<Candidate> container_fills(const Inquiry& inquiry, const void* attribute, std::string_view key);

// Where a function that moves the parts of what it is given lets one of these pass: `way` leads from the object whose
// other entries were moved at `moved` inwards to what holds the operand. False where that is not known.
bool find_passed_over(const Inquiry& inquiry, std::size_t operand, const trace::Position& moved,
                      std::span<const void* const> way);
// The same of a function that has handed back `object`: nothing in it was moved. `given_whole`: it was given that
// itself, and not its parts one by one, which else is known only of a function that calls itself.
bool find_handed_back_whole(const Inquiry& inquiry, std::size_t operand, const void* code, const void* object,
                            bool given_whole);
// The same of a function that is given the entries of something one by one, and has handed back this one.
void find_entry_handed_back(const Inquiry& inquiry, std::size_t operand, const void* code, const void* object);

// Where the function that made or computed an operand puts it, as it is, beside what a helper function gives that moves
// in the line `moved`.
void find_put_beside(const Inquiry& inquiry, std::size_t operand, const trace::Position& moved);

// Where the function that got an operand by a call has moved what the same call gave it another time.
bool find_taken_alike(const Inquiry& inquiry, std::size_t operand);

// The hooks that see what a module is called with before it runs. `takes_names`: also what is given by name.
struct InputHook {
  const void* code;
  bool takes_names;
};
std::vector<InputHook> input_hooks_of(const void* module);

// Where the program registers a hook of that kind: the only call, or the only one that names it. With `owner`, the
// attribute that the hooked module is kept by, the only one for that.
std::optional<trace::Position> hook_registration(const Inquiry& inquiry, const void* hook_code,
                                                 const void* owner = nullptr);

// The calls that gave the running functions what stands at a place of the search, or what it is reached through.
void add_calls_with(const Inquiry& inquiry, std::size_t operand, std::uint32_t place, trace::EvidenceKind kind);

// The collectors. Each adds what it finds about one operand.
void find_binding(const Inquiry& inquiry, std::size_t operand);
void find_given(const Inquiry& inquiry, std::size_t operand);
void find_crossing(const Inquiry& inquiry, std::size_t operand);
void find_attribute_stores(const Inquiry& inquiry, std::size_t operand);
void find_holder(const Inquiry& inquiry, std::size_t operand);
void find_modules(const Inquiry& inquiry, std::size_t operand);
void find_spread_model(const Inquiry& inquiry, std::size_t operand);
void find_forward_hooks(const Inquiry& inquiry, std::size_t operand);
void find_hook_inputs(const Inquiry& inquiry, std::size_t operand);
void find_missing_hook(const Inquiry& inquiry, std::size_t operand);
void find_optimizer_state(const Inquiry& inquiry, std::size_t operand);
void find_default_argument(const Inquiry& inquiry, std::size_t operand);
void find_moved_siblings(const Inquiry& inquiry, std::size_t operand);
void find_own_move(const Inquiry& inquiry, std::size_t operand);
void find_own_move_unused(const Inquiry& inquiry, std::size_t operand);
void find_moved_modules(const Inquiry& inquiry, std::size_t operand);
void find_kept_beside(const Inquiry& inquiry, std::size_t operand);
void find_moved_children(const Inquiry& inquiry, std::size_t operand);
void find_moved_parameters(const Inquiry& inquiry, std::size_t operand);
void find_generator(const Inquiry& inquiry, std::size_t operand);
void find_stay(const Inquiry& inquiry, std::size_t operand);
void find_copied_away(const Inquiry& inquiry, std::size_t operand);
void find_source_moved(const Inquiry& inquiry, std::size_t operand);
void find_source_copied(const Inquiry& inquiry, std::size_t operand);
void find_device_twin(const Inquiry& inquiry, std::size_t operand);
void find_default_device(const Inquiry& inquiry, std::size_t operand);
void find_entry_puts(const Inquiry& inquiry, std::size_t operand);
void find_unpacked_entry(const Inquiry& inquiry, std::size_t operand);
void find_cache_key(const Inquiry& inquiry, std::size_t operand);
void find_locals_elsewhere(const Inquiry& inquiry, std::size_t operand);
void find_alone_on_device(const Inquiry& inquiry, std::size_t operand);
void find_taken_out(const Inquiry& inquiry, std::size_t operand);
void find_returned(const Inquiry& inquiry, std::size_t operand);
void find_collected(const Inquiry& inquiry, std::size_t operand);
void find_weight_put(const Inquiry& inquiry, std::size_t operand);
void find_closure_of_copy(const Inquiry& inquiry, std::size_t operand);
void find_within_module(const Inquiry& inquiry, std::size_t operand);
void find_weight_brought(const Inquiry& inquiry, std::size_t operand);
void find_shared_module(const Inquiry& inquiry, std::size_t operand);
void find_given_to_temporary(const Inquiry& inquiry, std::size_t operand);
void find_ancestor(const Inquiry& inquiry, std::size_t operand);
// Beside the line that gave a variable its value.
void find_twin_of_binding(const Inquiry& inquiry, std::size_t operand, const trace::Position& bound);
void find_first_variable(const Inquiry& inquiry, std::size_t operand);
// The line that made the loader which gave what an operand was made of.
void find_drawn_loader(const Inquiry& inquiry, std::size_t operand);
void find_device_value(const Inquiry& inquiry, std::size_t operand);
void find_made_alike(const Inquiry& inquiry, std::size_t operand);
void find_given_to_module(const Inquiry& inquiry, std::size_t operand);
void find_unused_device(const Inquiry& inquiry, std::size_t operand);
void find_host_work(const Inquiry& inquiry, std::size_t operand);
void find_host_handover(const Inquiry& inquiry, std::size_t operand);
void find_module_twin(const Inquiry& inquiry, std::size_t operand);
void find_forward_call(const Inquiry& inquiry, std::size_t operand);
void find_given_to_keep(const Inquiry& inquiry, std::size_t operand);
void find_hook_on_list(const Inquiry& inquiry, std::size_t operand);
void find_result_moved(const Inquiry& inquiry, std::size_t operand);
void find_twin(const Inquiry& inquiry, std::size_t operand);
void find_handed_back(const Inquiry& inquiry, std::size_t operand);
void find_array_beside(const Inquiry& inquiry, std::size_t operand);
void find_came_through(const Inquiry& inquiry, std::size_t operand);
void find_told_beside(const Inquiry& inquiry, std::size_t operand);
void find_restored(const Inquiry& inquiry, std::size_t operand);

// Whether `module`, which keeps the operand as a plain attribute, has a method of its own that moves it with the rest.
void find_own_apply(const Inquiry& inquiry, std::size_t operand, const void* module);
// Whether the weights of `module`, which keeps the operand as a plain attribute, were moved away from beside it.
void find_holder_move(const Inquiry& inquiry, std::size_t operand, const void* module);
// The copy that brought all weights at and below a module, or the next one around that has any, from an operand's
// device to where it is missed; none where they came by several, or are elsewhere.
std::optional<trace::LineageNode> move_of_holder(const Inquiry& inquiry, std::size_t operand, const void* module);
// The call that made `module`, the outermost one around the operand, which is as old as that.
void find_module_made(const Inquiry& inquiry, std::size_t operand, const void* module);
// Whether `module`, the outermost one around the operand, is a copy of one that is where the operand is.
void find_module_copy(const Inquiry& inquiry, std::size_t operand, const void* module);
// The only line of the program that makes a functools.partial with this keyword; none where several do.
std::optional<trace::Position> partial_made_at(const Inquiry& inquiry, const Link& keyword);

// The `for` statement that a line stands in, in the same function; none where there is none.
std::optional<trace::Position> loop_around(const trace::Position& at);

// A line of a source file, by the function that it stands in.
trace::Position position_at(trace::StringId file, int line, std::string_view function);

// Reads source files alone, so it serves threads without Python, too.
// `computes_device` says whether what a path leads to, in the function of a position, has no device of its own, but
// computes one when it is asked; without it nothing is said of such.
using ComputesDevice = std::function<bool(const trace::Position& at, std::string_view path)>;
void find_device_source(const trace::OperandRecord& operand, std::size_t index, EvidenceList& found,
                        const ComputesDevice& computes_device = nullptr);
void find_filling(const trace::OperandRecord& operand, std::size_t index, EvidenceList& found);
void find_taken_from_maker(const trace::OperandRecord& operand, std::size_t index, EvidenceList& found);
void find_brought_back(const trace::OperandRecord& operand, std::size_t index, EvidenceList& found);
void find_stay_source(const Copy& stay, trace::DeviceSlot device, std::size_t index, EvidenceList& found);
// The line that fails, and a variable that has a tensor which an operand meets there; empty where it has no name.
struct Met {
  trace::Position at{};
  std::string variable;
};
// Of the calls that led to a line, the one that leaves a device out.
void find_call_without_device(const trace::Position& at, std::uint32_t calls, std::size_t index, EvidenceList& found,
                              const Met& met = {});
void find_device_not_given(const trace::OperandRecord& operand, std::size_t index, const Met& met, EvidenceList& found);
void find_beside_move(const trace::OperandRecord& operand, std::size_t index, EvidenceList& found);
void find_used_once(const trace::OperandRecord& operand, std::size_t index, EvidenceList& found);
void find_cache_guard(const trace::OperandRecord& operand, std::size_t index, EvidenceList& found);
void find_cache_key_in_text(const trace::OperandRecord& operand, std::size_t index, EvidenceList& found);
void find_module_constant(const trace::OperandRecord& operand, std::size_t index, EvidenceList& found);
// `site` is that of the operator that failed.
void find_trace(const trace::OperandRecord& operand, std::size_t index, trace::SiteId site, EvidenceList& found);

}  // namespace devsan::hooks
