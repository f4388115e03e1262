// Where a finding was made, as far as that decides whether it is told.
#pragma once

#include <string_view>

#include "trace/finding_kind.h"

namespace devsan::trace {

// What a finding is held against an entry by. Empty where it is not known: then only an entry that does not ask for it
// matches.
struct FindingPlace {
  FindingKind kind = FindingKind::device_mismatch;
  std::string_view op;        // "aten::add.Tensor"
  std::string_view file;      // of the innermost frame outside torch
  std::string_view function;  // qualified where the interpreter keeps that: "Trainer.step"
};

}  // namespace devsan::trace
