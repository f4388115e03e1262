// What an operator's schema says of its arguments: "add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)".
#pragma once

#include <cstdint>
#include <string_view>

namespace devsan::hooks {

// The k-th argument with type and default, "Tensor(a!) self"; empty where there is none.
std::string_view argument_text(std::string_view schema, int argument) noexcept;
// Its name: "self".
std::string_view argument_name(std::string_view schema, int argument) noexcept;

// What an operator does with the values of an argument.
enum class Access : std::uint8_t { none, read, write };

// `none` for views, for factories, for questions about shape, type or place, and for what only changes such things.
// Also for conversions (`to`, `copy_`), whose copying is watched by itself. Where it is not certain, `none`.
Access access_to(std::string_view schema, int argument) noexcept;

// Whether the operator may return its operand, or a view of it, so that only a copy inside it reads anything.
bool returns_view(std::string_view schema) noexcept;
// Whether the caller can ask for an asynchronous copy.
bool can_be_asynchronous(std::string_view schema) noexcept;

}  // namespace devsan::hooks
