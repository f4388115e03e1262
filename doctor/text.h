// Numbers and names as words of a sentence.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace devsan::doctor {

std::string gibibytes(double bytes);                              // "12.5 GiB"; "512 MiB" below one
std::string counted(std::uint64_t count, std::string_view noun);  // "1 GPU", "3 GPUs"
std::string billions(std::uint64_t count);                        // "7.0 billion"; "125.0 million"
std::string cuda_version_text(int version);                       // 12040: "12.4"
std::string lower(std::string text);                              // config files write "CPU" and "cpu" alike
// "a, b and c"
std::string listed(const std::vector<std::string>& words, std::string_view last = "and");

}  // namespace devsan::doctor
