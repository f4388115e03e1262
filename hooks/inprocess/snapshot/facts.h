// The facts of a meeting: the variables of the running functions, the objects around the operands, and the text of the
// files whose code takes part. docs/facts.md says what they are for.
#pragma once

#include <span>
#include <vector>

#include "hooks/inprocess/snapshot/object_search.h"
#include "trace/fact_layout.h"

namespace devsan::hooks {

struct Facts {
  trace::FactsPayload fixed{};
  std::vector<trace::ObjectFact> objects;
  std::vector<trace::LinkFact> links;
  std::vector<trace::VariableFact> variables;
  std::vector<trace::CopyFact> copies;
};

// From the frames of the call, `innermost` and those outside it, and from the ways to the operands that `search` has
// found. `waited_for`: as examine() has it. Runs no code of the program, keeps no reference, looks at a bounded number
// of objects (fact_bounds.h). With the GIL held (PythonSection). May throw std::bad_alloc.
Facts gather_facts(const ObjectSearch& search, const void* innermost, const void* waited_for,
                   std::span<const trace::OperandRecord> records, std::span<const OperandIdentity> identities);

// Writes them down beside their meeting, which is in the trace, and the files of its code, each once. Files without a
// name that can be opened need the GIL.
void record_facts(const trace::MeetingPayload& meeting, const Facts& facts) noexcept;

}  // namespace devsan::hooks
