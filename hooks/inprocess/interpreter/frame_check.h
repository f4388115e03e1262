// Whether the running interpreter lays out its frames as frame_layout says.
#pragma once

namespace devsan::hooks {

enum class LayoutVerdict {
  right,
  wrong,      // the interpreter says otherwise: its frames are not to be read
  undecided,  // the moment does not tell: another one may
};

// Holds frame_layout against what the interpreter itself says of the calling thread, and learns what else reading
// frames needs. Memory that a wrong layout leads to is read through the kernel. With the GIL; undecided without, and on
// a thread that runs no Python.
LayoutVerdict check_frame_layout() noexcept;

}  // namespace devsan::hooks
