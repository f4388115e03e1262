// The functions that dynamo is reading, as frames: each stands at the call that it has come to, its variables hold what
// they stand for, and behind the outermost come the frames that called the compiled function.
//
// With the GIL (PythonSection), while the traced call lasts. May throw std::bad_alloc.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "hooks/inprocess/snapshot/traced_values.h"

namespace devsan::hooks {

class TracedFrames {
 public:
  TracedFrames(const TracedCall& call, const TracedValues& values);

  // Valid as long as this.
  const void* innermost() const { return frames_.back().get(); }

 private:
  std::vector<std::unique_ptr<std::byte[]>> frames_;  // from the outermost inwards
};

}  // namespace devsan::hooks
