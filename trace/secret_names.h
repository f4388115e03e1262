// Whether something is called what people call their secrets: its value stays out of the trace.
#pragma once

#include <strings.h>

#include <cstddef>
#include <string_view>

namespace devsan::trace {

inline bool names_secret(std::string_view name) noexcept {
  for (const std::string_view word : {"token", "key", "password", "passwd", "secret", "credential", "auth"}) {
    for (std::size_t at = 0; at + word.size() <= name.size(); ++at) {
      if (strncasecmp(name.data() + at, word.data(), word.size()) == 0) return true;
    }
  }
  return false;
}

}  // namespace devsan::trace
