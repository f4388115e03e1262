// What an object keeps under a name, read past its class: no property, no descriptor and no __getattr__ runs.
//
// With the GIL (PythonSection).
#pragma once

#include <string_view>

namespace devsan::hooks {

// Of the object's dictionary, its slots, and the members that a type in C declares. Borrowed; null where there is none
// of this name, and for None.
void* member_of(const void* object, std::string_view name) noexcept;

// The same, where the member is a str; empty for any other. As text_of() of python_api.h.
std::string_view text_member_of(const void* object, std::string_view name) noexcept;

// The same, where it is an int that fits; `otherwise` for any other.
int number_member_of(const void* object, std::string_view name, int otherwise) noexcept;

// Whether the object's class, or one that it is derived from, goes by this name, without the module.
bool is_instance_of(const void* object, std::string_view name) noexcept;

// The c10::GeneratorImpl of a torch.Generator, which is all that its Python object has; null for any other.
const void* generator_of(const void* object) noexcept;

}  // namespace devsan::hooks
