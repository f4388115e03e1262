// What a process recorded around its findings, for who works out what a program could have decided otherwise: objects,
// who holds whom, variables, copies, and the text of the files whose code takes part. docs/facts.md says what each
// means.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/model/finding.h"
#include "trace/fact_layout.h"
#include "trace/reader.h"

namespace devsan::report {

std::string_view name_of(trace::ObjectKind kind);
std::string_view name_of(trace::FactLinkKind kind);
std::string_view name_of(trace::VariableKind kind);
std::string_view name_of(trace::CopyKind kind);

using ObjectIndex = std::size_t;

struct ObjectFact {
  trace::ObjectKind kind = trace::ObjectKind::other;
  std::string type;
  std::string text;
  std::optional<std::int64_t> number;  // the value of an int or bool, the entries of a container, dimensions
  // Where the code is that runs in it, or that its class is made of; without a file where there is none.
  std::string file;
  std::string function;
  int line = 0;
  std::string device;
  std::vector<LineageStep> lineage;  // of a tensor, newest first
  std::uint32_t storage = 0;         // tensors with equal ones share memory; 0: none
  std::optional<std::size_t> operand;
  bool shares_memory = false;  // with `operand`, which is another tensor
  bool requires_grad = false;
  bool leaf = false;
  bool cut = false;  // it holds more than the links say

  bool is_tensor() const { return kind == trace::ObjectKind::tensor || kind == trace::ObjectKind::parameter; }
};

struct LinkFact {
  trace::FactLinkKind kind = trace::FactLinkKind::unknown;
  ObjectIndex from = 0;
  ObjectIndex to = 0;
  std::string name;
  std::optional<int> index;
};

struct VariableFact {
  trace::VariableKind kind = trace::VariableKind::unknown;
  std::optional<std::size_t> frame;  // none: of another thread
  std::string name;
  ObjectIndex object = 0;
};

struct CopyFact {
  trace::CopyKind kind = trace::CopyKind::unknown;
  std::uint32_t storage = 0;
  std::string device;  // that it went to
  Frame user;
  Frame innermost;
  std::vector<Frame> calls;  // the innermost first
};

// Of one meeting. The operands are as the process recorded them, their histories too.
struct Facts {
  std::string finding;  // the id of the finding that the meeting became
  std::uint32_t pid = 0;
  std::optional<int> rank;
  Kind kind = Kind::device_mismatch;
  std::string op;
  std::string message;
  bool raised = false;
  trace::Phase phase = trace::Phase::other;
  std::vector<Frame> frames;  // innermost first
  std::vector<Frame> forward;
  std::vector<Operand> operands;
  std::vector<ObjectFact> objects;
  std::vector<LinkFact> links;  // by `from`
  std::vector<VariableFact> variables;
  std::vector<CopyFact> copies;
  bool recorded = false;  // objects were recorded at all
  bool cut = false;       // a bound was reached
  std::uint32_t microseconds = 0;

  // The links of an object, in the order in which it holds what it holds; and those that lead to it.
  std::vector<const LinkFact*> held_by(ObjectIndex object) const;
  std::vector<const LinkFact*> holders_of(ObjectIndex object) const;
  // What an object holds in one way under a name; none where there is no such link.
  std::optional<ObjectIndex> member(ObjectIndex object, trace::FactLinkKind way, std::string_view name) const;
  // A variable of a frame, else a global of its module; none where it is not recorded.
  std::optional<ObjectIndex> variable(std::size_t frame, std::string_view name) const;
  // The object that an operand is; none where it is not recorded.
  std::optional<ObjectIndex> object_of_operand(std::size_t operand) const;
  std::vector<const CopyFact*> copies_of(std::uint32_t storage) const;
};

struct SourceText {
  std::uint64_t size = 0;
  std::uint64_t hash = 0;
  std::optional<std::string> text;  // none where it was not kept
};

// By file: as the first process had it that kept its text.
using Sources = std::map<std::string, SourceText>;
void add_sources(const trace::TraceFile& trace, Sources& sources);

// Of all processes that were read.
struct FactsOfRun {
  std::vector<Facts> meetings;

  // `findings`: those of the trace's meetings, in their order.
  void add(const trace::TraceFile& trace, const std::vector<Finding>& findings);
};

}  // namespace devsan::report
