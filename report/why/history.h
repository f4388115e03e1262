// Questions that rules ask of an operand's history and of what the process found out about it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "report/finding.h"
#include "report/frames.h"

namespace devsan::report::why {

// The odd operand and the one whose device it should have shared.
struct Pair {
  const Operand& odd;
  const Operand& wanted;
};

// None where either is missing, or there is no Python line to speak of.
std::optional<Pair> pair_of(const Finding& finding);

// Whether a person who reads this finding can be asked to change the line: code of their own; or of a library, where
// the library itself failed.
bool is_changeable(const Frame& place, const Finding& finding);
// The step that put the value on the device it is on: the newest copy to it, or else the origin. Null without history.
const LineageStep* arrival_of(const Operand& operand);
// The same, where it is a copy from another device; null otherwise.
const LineageStep* newest_move_of(const Operand& operand);
// The copy to another device before that one, which is a step of the operand; null without one.
const LineageStep* move_before(const Operand& operand, const LineageStep& move);
// Whether no step of it is a copy to another device.
bool was_never_moved(const Operand& operand);
// Whether a step of it is on a device: before it came to where it is, it was there.
bool was_on(const Operand& operand, std::string_view device);
// The newest step on a line that keeps its result as an entry of a list or dict; null without one.
const LineageStep* stored_as_entry(const Operand& operand, const Finding& finding);
// Whether a line puts it into a cache, from where later calls take it whatever device they are for.
bool is_cached_at(const Operand& operand, const Frame& place);
// The first that the process found; null without one.
const Evidence* evidence_of(const Operand& operand, trace::EvidenceKind kind);
// One that has a position, in code that can be changed.
const Evidence* place_of(const Operand& operand, trace::EvidenceKind kind, const Finding& finding);
// Where the attribute that holds it directly, `held` (held_by_module or held_by_object), is stored: not what leads to
// that. Where it is not known which of several lines did, the one in the constructor. Null without one.
const Evidence* store_of(const Operand& operand, const Evidence& held, const Finding& finding);
// `test_data[0]`, `self.data[0][1]`: whether an expression begins with an entry of a variable or attribute.
bool begins_with_entry(std::string_view value);
// `past = batch[0]`: of several lines that may have given its variable the value, the only one that takes an entry out;
// the others compute something. Null without one.
const Evidence* perhaps_taken(const Operand& operand, const Finding& finding);
// Whether its first step, which made it anew, stands in the function of a line.
bool is_made_in(const Frame& place, const Operand& operand);
// Whether a weight, or another value, was made behind this line of a function that has run that far.
bool is_made_after(const Operand& made, const Frame& place);
// The newest step, since it came to its device, that gave a variable its value in the function of a line; null without
// one.
const LineageStep* bound_in_function(const Operand& operand, const Frame& place);
// The newest step that asks for a device; the oldest of all where none does. What asks for the device of a tensor
// stands before the history of that tensor. The operand has a history.
const LineageStep& asking_step(const Operand& operand);
// Whether the failing call itself made the value, or brought it here.
bool made_in_failing_call(const LineageStep& step, const Finding& finding);
// Comprehensions belong to the function that they stand in.
bool same_function(const Frame& one, const Frame& other);
// Whether the function that a line stands in was running when the operator failed.
bool is_running(const Frame& place, const Finding& finding);
// Whether the source of this call says which device it works on.
bool names_device(const Frame& place);
// Whether it says so in so many words, as `device="cpu"` and `.cuda()` do; `device=x.device` follows something else.
bool names_device_itself(const Frame& place);
// Whether a text means the accelerator that is current, without a number: `.cuda()`, `device="cuda"`; but not
// `torch.device("cuda", 1)`.
bool means_current_device(std::string_view text);
// Whether a text moves a value to where it says, or to an accelerator: `.to(…)`, `.cuda(…)`.
bool calls_move(std::string_view text);
// Whether the call in this line is a statement of its own: nobody takes what it gives.
bool drops_result(const Frame& place);
// `Cache(size, ids.device)`: the device of another value, and no setting.
bool is_device_of_value(const Frame& place);
// The function makes an object: `__init__`, `__post_init__`.
bool makes_object(const Frame& place);
// The call by which the object was made whose constructors made a value; the line that made it, where none did.
const Frame& made_by_call(const LineageStep& made);
// `self.net = net` in a constructor: the object keeps what it was given. `attribute` is "self.net".
bool keeps_argument(const Frame& place, std::string_view attribute);
// The step by which a factory made it that was left to choose the device; null for anything else.
const LineageStep* made_of_no_device(const Operand& operand);
// Whether a tensor is made like another one: `torch.zeros_like(x)`, `x.new_zeros(3)`.
bool made_like_another(const Frame& place);
// The function makes its object: what it stores, it stores once.
bool is_constructor(const Frame& place);
// Whether a loop begins there: `for x, y in loader:`.
bool is_loop(const Frame& place);
// "forward" of "Net.forward", and of "Net.forward.<locals>.<listcomp>".
std::string_view own_function(const Frame& place);

// "Digits" of "Digits.__init__"; the function's own name where it is no method.
std::string_view class_of(const Frame& place);

// Another attribute of the same object that the value of an attribute is made of, by `self.state =
// self.initial.clone()`.
struct SourceAttribute {
  const LineageStep* step;  // where it was stored, and made
  std::string name;         // "initial"
};
// `stored` is the line that stores `attribute`. None where that is made of something else, or of a Parameter.
std::optional<SourceAttribute> source_attribute(const Operand& operand, const Frame& stored,
                                                std::string_view attribute);

// A script that sets something there means it for everything.
bool is_beginning(const Frame& place);
// Whether it is a move of a module as a whole: `Module.to()`, `cuda()` and their kin.
bool moves_module(const LineageStep& move);
// `self.gamma = nn.Parameter(value).to(device)` keeps what `.to()` made, and that is no Parameter.
bool moves_parameter(const Frame& place);
// `self.register_buffer("mask", …)`, `self.scale = nn.Parameter(…)`
bool registers_weight(const Frame& place);
// Whether a call asks a weight for its device: `x.to(block.weight.device)`, `device=next(net.parameters()).device`.
bool asks_weight(const Frame& place);
// Whether the failing operator, one in place, writes to the operand.
bool is_written_to(const Operand& operand, const Finding& finding);
// Whether a place is in the forward of the `torch.autograd.Function` whose backward has failed.
bool is_in_own_forward(const Frame& place, const Finding& finding);
// Whether a weight belongs to a part of the outermost module around it.
bool belongs_to_part(const Operand& weight);
// Whether a factory begins a value in this step, as `torch.full((), scale, device=loss.device)` does: what stands
// before it is the history of the tensor that it asks for the device.
bool begins_value(const LineageStep& step);
// `encode(x.to(device))`: the copy goes to a call, and no name means it.
bool is_given_away(const Frame& copy);
// Whether it puts several tensors together: `torch.cat()`, `torch.stack()`.
bool joins_entries(const LineageStep& step);
// The step that put a weight, or what the operand was computed from, on the host where it is: `p.data = p.data.cpu()`,
// which is how weights are offloaded. Null without one.
const LineageStep* offloaded_in_place(const Operand& operand, const Finding& finding);
// The newest step before the failing line; null without one.
const LineageStep* newest_before(const Operand& operand, const Finding& finding);
// `targets = [p.clamp(0, n) for p in positions]`, above the failing line that goes through them: the step that computes
// the entries of the list. Null without one.
const LineageStep* list_made_above(const Operand& operand, const Finding& finding);
// Where a function calls the one that computed the operand above the line that moved what it was computed from. Null
// without one, and in a script, whose author may change either.
const Evidence* called_before_move(const Operand& operand, const Finding& finding);
// Where a module's plain attribute began, of whose value every later one is made, if the module has moved since and
// left it; null where that is not so, or the failing function began it.
const Evidence* begun_before_move(const Operand& attribute, const Finding& finding);
// Whether it is how `torch.load` makes what it reads.
bool is_load(const LineageStep& step);
// Whether it was read from a file by safetensors, which puts it on the CPU unless it is told a device.
bool is_load_of_safetensors(const LineageStep& step);
bool on_accelerator(const Operand& operand);
bool is_weight(const Operand& operand);
// Whether other weights of the model around it are known to be on another device.
bool model_is_elsewhere(const Operand& weight);
// Where the weights of the module that keeps a plain attribute were moved to a device as one; null where they were not.
const Evidence* holder_moved_to(const Operand& attribute, std::string_view device);

// Where the attribute is stored; else, where its value was made. An entry of a list or dict may come later than that
// itself: where the function that stores the attribute does not put it there, it is made anew now and then, and the
// attribute is not to blame. Of several lines that store it, the constructor's is where a buffer is registered.
const Frame* attribute_place(const Operand& operand, const Evidence& held, const Finding& finding);

}  // namespace devsan::report::why
