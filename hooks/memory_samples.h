// Looks at the memory of the process and of its devices, from iteration to iteration.
#pragma once

#include <cstdint>

namespace devsan::hooks {

// To be called when an iteration begins, on any thread, outside of every allocator; looks at most some fifty times a
// second.
void sample_memory(std::uint32_t step) noexcept;

}  // namespace devsan::hooks
