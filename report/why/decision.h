// Who decided on which device a value is made, or where it is moved to: a line that gives a device to what acts on it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "report/why/history.h"

namespace devsan::report::why {

struct Decision {
  const Frame& at;
  std::string name;      // the attribute or argument that says the device
  std::string standard;  // its default, as Python text, where the call in this line does not give it; else empty
};

// The last line that the process could follow the device to, in code that can be changed. `kind`: device_from or
// stay_from. None where a constructor merely keeps what it was given.
std::optional<Decision> decision_of(const Operand& operand, trace::EvidenceKind kind, const Finding& finding);

// The attribute that has kept the device from where it was decided, or may have, until it was used; null where none
// did.
const Evidence* attribute_between(const Operand& operand, trace::EvidenceKind kind, const Finding& finding);

// The same, where a constructor has stored it: it says what was so then.
const Evidence* attribute_of_constructor(const Operand& operand, trace::EvidenceKind kind, const Finding& finding);

// Whether an evidence is a line in a function, and no attribute, that hands a device on.
bool hands_device_on(const Evidence& evidence, const Finding& finding);

// The line in the function that made one operand which gives its device to what the other comes from: there both could
// have been told. Null where there is none.
const Evidence* device_given_beside(const LineageStep& made, const Operand& other, const Finding& finding);

// Whether the line says the device in so many words, or leaves it at its default, rather than handing it on.
bool is_final(const Decision& decision);
// `where = layer.weight.device.type`, which says no number.
bool keeps_type_alone(const Decision& decision);
// `table[...]`: one of the places that a table gives to modules or tensors, which a loop puts there.
bool is_of_plan(const Decision& decision);
// An attribute that says where to, and that is stored now and then: each store decides for all that come after it.
bool is_changing_target(const Decision& decision);
// An entry of a dictionary of settings, which is made in this line.
bool is_entry(const Decision& decision);
// Whether a name, or an expression, says a device: "device", "gpu", "rank".
bool speaks_of_device(std::string_view text);
// An argument that says a device by its name. One that goes by another name is a tensor or a model, whose device is
// followed for good reasons mostly.
bool is_device_argument(const Decision& decision);

// "because of `device`, which gets its value here"; goes on from "it is on the CPU".
std::string because_of(const Decision& decision);
// "Let `device` be on cuda:0 here": the beginning of a sentence.
std::string change_of(const Decision& decision, const Pair& pair, const Finding& finding);

}  // namespace devsan::report::why
