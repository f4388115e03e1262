// Numbers as words of a sentence.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace devsan::report {

// "0-3, 6"
std::string ranges_of(const std::vector<int>& ascending);
// "rank 3", "ranks 0-2, 6"
std::string ranks_text(const std::vector<int>& ascending);
// "cpu, cuda:0"
std::string listed_words(const std::set<std::string>& words);
// "1 error", "3 errors"
std::string counted(std::uint64_t count, std::string_view noun);
// "3.2 KiB"
std::string bytes_text(std::uint64_t bytes);
// "3.2 s", "2 min 5 s"
std::string seconds_text(std::int64_t nanoseconds);

}  // namespace devsan::report
