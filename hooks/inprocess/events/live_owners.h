// What the storages of tensors are to the program, by the Python objects that lead to them.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "hooks/inprocess/snapshot/object_search.h"
#include "trace/memory_layout.h"

namespace devsan::hooks {

struct LiveOwner {
  trace::LiveKind kind = trace::LiveKind::other;
  std::string module;  // the first levels of its name
};

class LiveOwners final : public TensorObserver {
 public:
  // `thread`: the calling one's PyThreadState. With the GIL (PythonSection). May throw std::bad_alloc.
  void look(const void* thread);

  // Whether every object was seen that the frames of the program's threads lead to.
  bool complete() const { return complete_; }
  // Of a storage with the value in it; nothing where no object was seen to keep it.
  std::optional<LiveOwner> owner_of(const void* storage, trace::LineageId value) const;

  void tensor(std::uint32_t place, const c10::TensorImpl* tensor) override { seen_.push_back({place, tensor}); }

 private:
  struct Seen {
    std::uint32_t place;
    const c10::TensorImpl* tensor;
  };

  void take(const Seen& seen);
  void set(const void* storage, const LiveOwner& owner);
  const void* parameter_of_state(std::uint32_t index) const;

  ObjectSearch search_{*this};
  std::vector<Seen> seen_;
  std::unordered_map<const void*, LiveOwner> owners_;
  bool complete_ = false;
};

// Whether a value is what a program begins with, and none that it computed: a loader's, or copied from the host to a
// device. Where an object of the program keeps it, what a factory made is so, too.
bool is_input(trace::LineageId value, bool kept_by_object) noexcept;

// The source of the lines that made what lives.
void keep_sources_of(std::span<const trace::LiveMemoryRow> rows) noexcept;

}  // namespace devsan::hooks
