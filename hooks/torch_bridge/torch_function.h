// How a function of torch is declared that no header of torch's declares so: as a plain function of the same calling
// convention, under its mangled name. A result that is an object is a first argument then, `this` comes before the
// others, and an object that is passed by value is an address.
#pragma once

// Weak: a torch that lacks the function leaves its address null. Visible, so that it is looked up in torch.
#define DEVSAN_TORCH_FUNCTION __attribute__((weak, visibility("default")))
