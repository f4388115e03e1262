// When the frames of the process's Python begin to be read. Torch may be loaded before Python, at a moment that shows
// nothing of its frames, or by a thread without the GIL: then the next chance is taken.
#pragma once

namespace devsan::hooks {

// Where torch is, and the code of its Python bindings, which may come later. Any number of times.
void look_for_torch() noexcept;

// Finds the interpreter and checks how it lays out its frames, unless that is decided. Holds no lock that another
// thread waits for; the GIL is taken only where the caller may, otherwise the interpreter is asked for a moment of its
// own. Any thread, any number of times.
[[gnu::cold]] void look_for_python(bool may_take_gil = false) noexcept;

// The calling thread's interpreter state where that is one which is never freed: of the main thread, from 3.11 on.
const void* lasting_python_thread() noexcept;

}  // namespace devsan::hooks
