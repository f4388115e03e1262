// The frames that an exception has left, as its traceback keeps them alive: with the values that their variables had.
//
// With the GIL (PythonSection), while the traceback lives. May throw std::bad_alloc.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace devsan::hooks {

// Such frames are linked to nobody, and say where they stopped to run, which `finally` and `with` move on. Those here
// are copies in the layout of the interpreter's own, linked as the frames of functions that wait for each other are,
// and each stands at the call that the exception left it by: what reads running frames reads them, too.
class TracebackFrames {
 public:
  // `traceback`: a types.TracebackType, or anything else, which has no frames.
  explicit TracebackFrames(const void* traceback);

  // Valid as long as this; null where there is none.
  const void* innermost() const { return copies_.empty() ? nullptr : copies_.back().get(); }

 private:
  std::vector<std::unique_ptr<std::byte[]>> copies_;  // from the outermost inwards
};

}  // namespace devsan::hooks
