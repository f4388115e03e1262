// From a line where a device could have been decided otherwise to a patch that decides it so.
#pragma once

#include <optional>
#include <string>

#include "report/model/finding.h"
#include "report/ranking/candidate.h"
#include "report/slice/code.h"

namespace devsan::report::fixes {

struct Patch {
  std::string file;
  std::string diff;  // unified; `patch` applies it, and the result parses
  std::string text;  // what it does, as one sentence in the imperative
};

// Lets the operand that the line belongs to be on the device of the others. None where no edit of the line's
// expressions, and no statement behind it, could decide that.
std::optional<Patch> patch_for(const Finding& finding, const ranking::Candidate& candidate, const slice::Code& code);

}  // namespace devsan::report::fixes
