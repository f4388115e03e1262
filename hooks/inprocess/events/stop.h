// The option `stop_after`, for rehearsals on simulated devices: the process ends with 0 once it has made so many
// optimizer steps.
#pragma once

#include <cstdint>
#include <string_view>

namespace devsan::hooks {

// Iteration `step` begins: the last one is complete, with its optimizer. Does not return where enough were made.
void stop_after_enough_steps(std::uint32_t step) noexcept;

// With the option: keeps what the simulation says it does not have, as a notice.
void note_not_simulated(std::string_view message) noexcept;

}  // namespace devsan::hooks
