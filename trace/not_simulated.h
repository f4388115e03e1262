// How the simulation begins every error about something that it does not have.
#pragma once

#include <string_view>

namespace devsan::trace {

inline constexpr std::string_view kNotSimulated = "devsan's simulated CUDA devices do not cover ";

}  // namespace devsan::trace
