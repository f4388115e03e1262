// Literals of Python and their values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "report/program/node.h"

namespace devsan::program {

// Also of a negative one; none beyond 64 bits.
std::optional<std::int64_t> integer_value(Node node);
// Of integers too; none for complex numbers.
std::optional<double> number_value(Node node);
// Of a string without interpolation, with adjacent ones put together. Escapes are resolved. None for bytes.
std::optional<std::string> string_value(Node node);
// A string of any kind: with interpolation, raw, bytes, several adjacent ones.
bool is_string(Node node);
bool is_interpolated_string(Node node);  // f"…", t"…"
bool is_bytes(Node node);
// True or False.
std::optional<bool> boolean_value(Node node);
// True, False, a number, string, None or ellipsis: the same at every run.
bool is_literal(Node node);

}  // namespace devsan::program
