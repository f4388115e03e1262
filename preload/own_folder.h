// Where libdevsan.so itself lies.
#pragma once

#include "preload/path_text.h"

namespace devsan {

// The folder of the library, with links followed: LD_PRELOAD may name one. Empty if the loader does not know it.
FixedPath own_folder() noexcept;

}  // namespace devsan
