// How long the thread that trains waits for a DataLoader. Torch's loader, and what is made after it, marks each call of
// its iterator for profilers: an operator takes the mark's name when the call begins, and what it gave when the call
// ends. Only those two calls cost anything here.
#pragma once

namespace devsan::hooks {

// An argument of a call torch.ops.X.Y(…) that is to be a str; with the GIL. Begins a wait where it is such a mark.
void note_text_argument(const void* object) noexcept;

// The same of an argument that is an object of a C++ class. Ends the wait of the call that hands it on.
void note_object_argument() noexcept;

}  // namespace devsan::hooks
