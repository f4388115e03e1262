// Attributes of modules that may say where something belongs - a number, a device, the name of one - and that a library
// overwrites, though the module's own class, or the program, has set them.
#pragma once

namespace devsan::hooks {

// Has the interpreter begin to watch as soon as it can: between two instructions of the main thread, when torch.nn has
// been imported. Any thread, any number of times.
void watch_attribute_writes() noexcept;

}  // namespace devsan::hooks
