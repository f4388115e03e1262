// The backward slice of one operand: every place in the program that its value, or its device, may have come through.
//
// A slice is followed over three aspects. Of a value it is asked what it was computed from; of a module what object
// holds it, and where that was made and moved; of a device what expression says it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "report/model/finding.h"
#include "report/program/node.h"

namespace devsan::report::slice {

class Code;

enum class Role : std::uint8_t {
#define DEVSAN_ROLE(name, sentence) name,
#include "report/slice/roles.def"
#undef DEVSAN_ROLE
};
constexpr std::size_t kRoles = 0
#define DEVSAN_ROLE(name, sentence) +1
#include "report/slice/roles.def"
#undef DEVSAN_ROLE
    ;
std::string_view name_of(Role role);
// With `{}` for the operand.
std::string_view sentence_of(Role role);

// A value is bound, kept or handed on there, as an argument or by a default.
bool binds_value(Role role);

enum class Aspect : std::uint8_t { value, module, device };

// Whose slice a place belongs to: the operand that PyTorch found odd, or the others. The program's places belong to
// neither.
enum class Side : std::uint8_t { odd, other, program };

struct Place {
  program::Node node;  // its first line is the place's
  Role role = Role::bound;
  Aspect aspect = Aspect::value;
  Side side = Side::program;
  double distance = 0;  // steps from where the operand is used, the likelier ways being shorter
  program::Node value;  // what is bound, given, stored or tested there
  // On the way from the use to the step of the history that decided the device: how many steps of the slice lie between
  // the place and either end.
  std::optional<std::size_t> from_origin{};
  std::optional<std::size_t> from_use{};
  // Whether the way that the place lies on goes on to the step that decided the device. None where the slice did not
  // come to that step: then nothing is known.
  std::optional<bool> leads_to_origin{};
};

// All places that one failure leads to, of every operand. In the worst case as many as kSteps for each operand.
std::vector<Place> slice_of(const Finding& finding, const Code& code);

}  // namespace devsan::report::slice
