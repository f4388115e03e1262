// What Python's objects tell of the operands of a call: what they are called, who holds them, and
// which lines of the program put them there.
#pragma once

#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/snapshot/facts.h"
#include "hooks/torch_bridge/operand_list.h"

namespace devsan::hooks {

// A call that an error has ended.
struct Failure {
  trace::OperatorId op;
  trace::SiteId site;
  trace::StringId message;
};

// Fills in names of operands, adds evidence and gathers facts, from the frames that made the call, `innermost` and
// those outside it. `waited_for`: a PyThreadState whose frames know little of the program, which waits for it in other
// threads, as for one of autograd's; null where its own frames tell all. With the GIL held (PythonSection). What needs
// more memory than there is stays unknown.
void examine(const void* innermost, const void* waited_for, const Failure& failure, OperandList& operands,
             EvidenceList& evidence, Facts& facts) noexcept;

// Adds what the text of the source files tells of the operands. Needs no Python.
void examine_text(const Failure& failure, std::span<const trace::OperandRecord> operands,
                  EvidenceList& evidence) noexcept;

// The names alone, for operands that nothing refused.
void find_names(const void* thread, trace::SiteId site, OperandList& operands) noexcept;

}  // namespace devsan::hooks
