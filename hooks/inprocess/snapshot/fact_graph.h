// The objects around the operands of a meeting, each once, and who holds whom, within the bounds of fact_bounds.h.
//
// With the GIL (PythonSection). Runs no code of the program, keeps no reference. May throw std::bad_alloc.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "hooks/inprocess/snapshot/fact_links.h"
#include "hooks/inprocess/snapshot/fact_objects.h"
#include "trace/fact_layout.h"

namespace devsan::hooks {

inline constexpr std::uint16_t kNoFact = 0xffff;

class FactGraph final : public FactLinkVisitor {
 public:
  // Both are of the same operands, and outlive this.
  FactGraph(std::span<const trace::OperandRecord> records, std::span<const OperandIdentity> identities);

  // The index of an object, which is recorded where it is not yet; kNoFact where there is no room. `name`: what leads
  // to it, which tells whether a text may be recorded.
  std::uint16_t add(void* object, const FactLink& name);
  // The same of a tensor that may have no Python object.
  std::uint16_t add_tensor(const c10::TensorImpl* tensor, void* object);
  // kNoFact where it is not recorded.
  std::uint16_t find(const void* object);
  // Records a link that has to be there, whatever else there is no room for.
  void connect(std::uint16_t from, std::uint16_t to, const FactLink& link);

  // Records what the objects hold that were added and not followed, and what those hold, the nearest first.
  void follow();
  // What the copy table knows of the storages of all tensors that are recorded.
  std::vector<trace::CopyFact> copies() const;

  bool cut() const { return cut_; }
  const std::vector<trace::ObjectFact>& objects() const { return objects_; }
  const std::vector<trace::LinkFact>& links() const { return links_; }
  FactDescriber& describer() { return describer_; }

  bool link(const FactLink& link, void* object, const c10::TensorImpl* tensor) override;

 private:
  struct Known {
    void* object;  // null for a tensor without a Python object
    const c10::TensorImpl* tensor;
    std::uint8_t depth;
  };

  std::uint16_t add_new(const trace::ObjectFact& fact, const Known& known);
  void match_operand(const Known& known, trace::ObjectFact& fact) const;
  bool may_hold_more(trace::FactLinkKind kind);
  void cut_current();

  std::span<const trace::OperandRecord> records_;
  std::span<const OperandIdentity> identities_;
  FactDescriber describer_;
  std::vector<trace::ObjectFact> objects_;
  std::vector<trace::LinkFact> links_;
  std::vector<Known> known_;                                 // by index
  std::unordered_map<const void*, std::uint16_t> indexes_;   // tensors by their TensorImpl
  std::unordered_map<const void*, std::uint32_t> storages_;  // their numbers
  std::vector<const c10::StorageImpl*> storage_order_;
  std::uint16_t current_ = 0;  // whose links are visited
  std::size_t entries_ = 0;    // of it, so far
  std::size_t attributes_ = 0;
  std::uint8_t depth_ = 0;  // of what is added
  std::size_t followed_ = 0;
  bool cut_ = false;
};

// The name of a link, interned.
trace::StringId name_of(const FactLink& link);

}  // namespace devsan::hooks
