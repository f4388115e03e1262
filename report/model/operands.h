// The operands of a meeting, each with its history, and the odd ones marked.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/model/finding.h"
#include "trace/reader.h"

namespace devsan::report {

std::vector<Operand> operands_of(const trace::TraceFile& trace, const trace::Meeting& meeting);
// The steps of a history, newest first.
std::vector<LineageStep> lineage_of(const trace::TraceFile& trace, trace::LineageId id);
// None of these is odd: traffic is no disagreement.
std::vector<Operand> operands_of(const trace::TraceFile& trace, const trace::Traffic& traffic);

// What a sentence calls it: the program's name for it, or else the schema's.
const std::string& spoken_name(const Operand& operand);
// The first odd operand; null where there is none.
const Operand* first_odd(const std::vector<Operand>& operands);
// The operand whose device the odd one should have shared; null where there is none.
const Operand* counterpart_of(const Operand& odd, const std::vector<Operand>& operands);
// Whether the failing call made the operand itself: it went to code without lines of its own, such as TorchScript or an
// extension, and an operator in there failed. Not for what the same operator made in the call before, in a loop.
bool is_made_inside_call(const Operand& operand, const Finding& finding);
// The devices that met, in the order of the operands, each once.
std::vector<std::string> devices_of(const std::vector<Operand>& operands);
// "cuda" of "cuda:3", into whose text it points: every rank has a device of its own.
std::string_view kind_of_device(std::string_view device);

}  // namespace devsan::report
