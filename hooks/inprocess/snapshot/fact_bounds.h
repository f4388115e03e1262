// How much of a program's objects is recorded around a meeting.
//
// A record of the largest size is some 370 KiB, and is gathered in some ten milliseconds: a fifth of what a meeting may
// take as a rule. A model of a hundred layers is about 4,000 objects. What is nearest to the operands and to the
// running functions is recorded first, so that a bound cuts off what is furthest away.
#pragma once

#include <cstddef>
#include <cstdint>

namespace devsan::hooks {

inline constexpr std::size_t kMaxFactObjects = 4000;
inline constexpr std::size_t kMaxFactLinks = 12000;
inline constexpr std::size_t kRoomForPaths = 1000;  // of those, kept for the ways to the operands
inline constexpr std::size_t kMaxFactVariables = 600;
inline constexpr std::size_t kMaxGlobals = 200;         // of those, of one module
inline constexpr std::size_t kMaxTorchVariables = 150;  // of those, of torch's own functions
inline constexpr std::size_t kMaxFactFrames = 64;       // as many as a meeting has
inline constexpr std::size_t kMaxFactCopies = 600;
inline constexpr std::uint8_t kMaxFactDepth = 8;  // links from a variable, or from what holds an operand

// Of one object: enough for the layers of a model and the columns of a batch; a vocabulary or a data set is cut.
inline constexpr std::size_t kMaxFactEntries = 64;
inline constexpr std::size_t kMaxFactAttributes = 200;

// A device's name or an option; what is longer is data.
inline constexpr std::size_t kMaxFactText = 40;

}  // namespace devsan::hooks
