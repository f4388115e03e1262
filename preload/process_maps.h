// Reads /proc/PID/maps line by line into a buffer on the stack: no memory from the heap, no stdio.
#pragma once

#include <cstddef>
#include <cstdint>

namespace devsan {

struct Mapping {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  int protection = 0;     // PROT_* bits
  const char* path = "";  // what stands behind the inode, as the kernel escapes it; valid during the visit
};

// Calls visit(mapping, context) for every mapping of process `pid` (0: this one) in the order of addresses until it
// returns false. False when the file cannot be read.
bool visit_mappings(int pid, bool (*visit)(const Mapping&, void*), void* context) noexcept;

template <typename Visitor>
bool for_each_mapping(int pid, Visitor visitor) noexcept {
  return visit_mappings(
      pid, [](const Mapping& mapping, void* context) { return (*static_cast<Visitor*>(context))(mapping); }, &visitor);
}

}  // namespace devsan
