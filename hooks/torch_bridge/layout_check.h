// Compiled hooks read a tensor's fields where the headers had them that they were compiled with. Whether the torch at
// hand has them there is asked of that torch itself.
#pragma once

namespace devsan::hooks {

// What is wrong: "they misread the sizes of a tensor"; null where all is as torch's own functions say. To be called
// once, before any wrapper is in place: it calls a few operators on a tensor of a few bytes on the CPU.
const char* wrongly_read_of_tensors() noexcept;

}  // namespace devsan::hooks
