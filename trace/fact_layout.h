// The part of the trace file that holds the facts of a meeting: the objects around its operands as they were, and the
// text of the files whose code takes part. Under the rules of trace/file_layout.h; docs/trace-format.md has the same
// layout for other readers, and docs/facts.md says what is recorded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "trace/file_layout.h"

namespace devsan::trace {

enum class ObjectKind : std::uint8_t {
#define DEVSAN_OBJECT(enumerator, number, name) enumerator = number,
#include "trace/fact_kinds.def"
};

enum class FactLinkKind : std::uint8_t {
  unknown = 0,
#define DEVSAN_LINK(enumerator, number, name) enumerator = number,
#include "trace/fact_kinds.def"
};

enum class VariableKind : std::uint8_t {
  unknown = 0,
#define DEVSAN_VARIABLE(enumerator, number, name) enumerator = number,
#include "trace/fact_kinds.def"
};

enum class CopyKind : std::uint8_t {
  unknown = 0,
#define DEVSAN_COPY(enumerator, number, name) enumerator = number,
#include "trace/fact_kinds.def"
};

enum ObjectFlags : std::uint8_t {
  kObjectRequiresGrad = 1,  // autograd computes the gradient of the tensor
  kObjectLeaf = 2,          // no operator that autograd has recorded made the tensor
  kSharesMemory = 4,        // it is not `operand` itself, but has its memory
  kObjectCut = 8,           // it holds more than its links say
  kHasNumber = 16,
};

// Records of facts end at a multiple of 8.
constexpr std::uint64_t whole_words(std::uint64_t bytes) noexcept {
  return (bytes + 7) / 8 * 8;
}

inline constexpr std::int8_t kNoOperand = -1;

// An object of the process. Its index in the record is what links and variables call it by.
struct ObjectFact {
  ObjectKind kind;
  std::uint8_t flags;     // ObjectFlags
  DeviceSlot device;      // of a tensor, a generator or a torch.device
  std::int8_t operand;    // index of the meeting's operand that it is, or shares memory with; kNoOperand
  StringId type;          // "torch.device", "__main__.Net"
  StringId text;          // of a string, a device, a Python module's name; none for others
  StringId file;          // that the code is in which the object runs or is made by; none without such code
  StringId function;      // qualified name of that code
  std::int32_t line;      // that it begins in
  LineageId lineage;      // of a tensor
  std::uint32_t storage;  // tensors with equal ones share memory; 0: none
  std::int64_t number;    // with kHasNumber: an int's or bool's value, a container's entries, a tensor's dimensions
};
static_assert(sizeof(ObjectFact) == 40);

// `from` holds `to`.
struct LinkFact {
  std::uint16_t from;
  std::uint16_t to;
  StringId name;       // of the attribute, key, argument or variable; none where it has none
  std::int32_t index;  // of the entry; the key of a numbered_entry; -1 where there is none
  FactLinkKind kind;
  std::uint8_t reserved[3];
};
static_assert(sizeof(LinkFact) == 16);

inline constexpr std::uint16_t kNoFrame = 0xffff;

struct VariableFact {
  std::uint16_t frame;  // of the meeting, counted from the innermost; kNoFrame: of another thread
  std::uint16_t object;
  StringId name;
  VariableKind kind;
  std::uint8_t reserved[3];
};
static_assert(sizeof(VariableFact) == 12);

// What was done with a storage that left it where it was; of each kind the last time.
struct CopyFact {
  std::uint32_t storage;  // as ObjectFact has it
  SiteId site;
  LineageId calls;  // that led there, as LineageNode::calls
  CopyKind kind;
  DeviceSlot device;  // that the copy went to
  std::uint16_t reserved;
};
static_assert(sizeof(CopyFact) == 16);

enum FactsFlags : std::uint32_t {
  kFactsCut = 1,  // a bound was reached: there was more to record
};

// Followed by ObjectFact[objects], LinkFact[links], VariableFact[variables], CopyFact[copies], and zeros up to a
// multiple of 8.
struct FactsPayload {
  std::uint64_t meeting;       // where the record of the meeting begins in the event section
  std::uint32_t flags;         // FactsFlags
  std::uint32_t microseconds;  // of processor time, to gather this
  std::uint32_t objects;
  std::uint32_t links;
  std::uint32_t variables;
  std::uint32_t copies;
};
static_assert(sizeof(FactsPayload) == 32);

// Followed by the first `kept` bytes of the text, which is all of it or none, and zeros up to a multiple of 8.
struct SourceFilePayload {
  StringId file;
  std::uint32_t kept;
  std::uint64_t size;  // bytes of the text
  std::uint64_t hash;  // FNV-1a, 64 bits, of the text
};
static_assert(sizeof(SourceFilePayload) == 24);

static_assert(std::is_trivially_copyable_v<FactsPayload> && std::is_trivially_copyable_v<ObjectFact>);

}  // namespace devsan::trace
