// The tensors that stand beside an operand, in a dictionary or among the arguments of a call, and where most of them
// are. With the GIL (PythonSection); may throw std::bad_alloc.
#pragma once

#include <cstddef>
#include <map>

#include "hooks/inprocess/evidence/evidence.h"

namespace devsan::hooks {

class Neighbours final : public LinkVisitor {
 public:
  Neighbours(const Inquiry& inquiry, std::size_t operand) : inquiry_(inquiry), operand_(operand) {}
  // Looks at so many links, and no more.
  void stop_after(std::size_t links) { left_ = links; }
  bool link(const Link&, void* object) override;
  // Says (entries_elsewhere) where most of them are, if the operand met something there and is elsewhere itself.
  bool report() const;

 private:
  static constexpr std::size_t kMaxLinks = 256;
  const Inquiry& inquiry_;
  const std::size_t operand_;
  std::map<trace::DeviceSlot, std::size_t> counts_;
  std::size_t all_ = 0;
  std::size_t left_ = kMaxLinks;
};

}  // namespace devsan::hooks
