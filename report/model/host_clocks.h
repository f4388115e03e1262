// Times of several hosts by the clock of one of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace devsan::report {

struct HostClocks {
  std::map<std::string, std::int64_t> offsets{};  // what is to be added to the clock of a host; else 0

  // Of a time that is not known, 0, none is made. Times of a damaged trace may be any numbers.
  std::int64_t common(std::int64_t time_ns, const std::string& host) const {
    const auto offset = offsets.find(host);
    if (time_ns == 0 || offset == offsets.end()) return time_ns;
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(time_ns) + static_cast<std::uint64_t>(offset->second));
  }
};

}  // namespace devsan::report
