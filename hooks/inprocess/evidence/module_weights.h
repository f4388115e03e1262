// Which module a running function belongs to, and where that one's weights are.
//
// With the GIL (PythonSection); bounded; runs no code of the program. May throw std::bad_alloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "hooks/inprocess/snapshot/object_search.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

// Shows the parameters and buffers at and below a module, each once, its own before those of its children, until
// `visit` says false.
void visit_weights(const ObjectSearch& search, const void* root,
                   const std::function<bool(const c10::TensorImpl&)>& visit);

// A module and those below it, each once, the outer ones first; `most` at most.
std::vector<const void*> modules_below(const void* root, std::size_t most);

// The newest copy in the history of a weight, which brought it to its device; none where it was made there.
std::optional<trace::LineageNode> newest_move_of(const c10::TensorImpl& weight);

// How the histories of the parameters and buffers at and below a module end, as far as they are known.
std::unordered_set<std::uint32_t> weight_tags(const ObjectSearch& search, const void* root);

// On which devices the parameters and buffers at and below a module are.
class Weights {
 public:
  Weights(const ObjectSearch& search, const void* root);

  // The device that more than half of several are on; none without one.
  trace::DeviceSlot usual() const;
  // At least half of them.
  bool mostly_on(trace::DeviceSlot device) const;
  // "10 of 12"; some are on `device`.
  std::string share_of(trace::DeviceSlot device) const;
  bool some_on(trace::DeviceSlot device) const { return counts_.contains(device); }
  bool all_on_one() const { return counts_.size() == 1; }
  bool empty() const { return counts_.empty(); }
  // The device that all of them are on.
  std::optional<trace::DeviceSlot> only() const {
    return all_on_one() ? std::optional(counts_.begin()->first) : std::nullopt;
  }

 private:
  static constexpr std::size_t kSeveral = 4;

  std::map<trace::DeviceSlot, std::size_t> counts_;
  std::size_t all_ = 0;
};

// `model.layers` is a list of modules, which a program goes through: nothing ever calls the list itself.
bool is_never_called(const void* module);

// The first argument of the function that runs in a frame, where it is a module; null otherwise.
const void* module_called(const void* frame);

// Whether the function that `frame` runs was called by the program itself, in `caller`, and not by Module.__call__,
// with whose hooks it would run.
bool called_by_program(const void* frame, const void* caller);

}  // namespace devsan::hooks
