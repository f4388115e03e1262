// SHA-256 (FIPS 180-4).
#pragma once

#include <string>
#include <string_view>

namespace devsan::launch {

// In lower-case hexadecimal digits.
std::string sha256(std::string_view bytes);

}  // namespace devsan::launch
