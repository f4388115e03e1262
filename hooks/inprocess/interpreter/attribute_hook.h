// Every write of an attribute of a module (`module.name = value`, setattr) passes torch.nn.Module.__setattr__, a
// function written in Python: no class of modules has another slot for it than the interpreter's own, so no instruction
// writes past it. The function's entry for calls is replaced, as PyFunction_SetVectorcall() of CPython 3.12 does for
// whoever asks; the function remains the object that the program knows, with its code. Other objects' attributes cost
// nothing.
#pragma once

namespace devsan::hooks {

// Called with the GIL before the attribute is written, in the frame of the writer. All three are borrowed.
using AttributeObserver = void (*)(const void* object, const void* name, const void* value) noexcept;

enum class AttributeHook { installed, not_yet, impossible };

// With the GIL. `not_yet`: torch.nn has not been imported.
AttributeHook hook_module_attributes(AttributeObserver observer) noexcept;

}  // namespace devsan::hooks
