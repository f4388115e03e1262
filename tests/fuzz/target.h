// What the targets have in common. Each is a program of its own: LLVMFuzzerTestOneInput is called with one input after
// the other, by libFuzzer or by replay_main.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "report/findings/collect.h"
#include "report/model/facts.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace devsan::fuzz {

// Ends the program where the promise does not hold, as a sanitizer does.
void require(bool holds, const char* promise);

// A directory of this process, in memory where the machine has such a place.
const std::filesystem::path& scratch();
std::filesystem::path write_scratch(const std::string& name, std::span<const std::uint8_t> bytes);

// The files of a packed input, as the traces of one directory, are read as `devsan view` reads them.
report::Reading read_packed(std::span<const std::uint8_t> input, report::FactsOfRun* facts);

}  // namespace devsan::fuzz
