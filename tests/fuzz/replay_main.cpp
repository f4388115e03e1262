// Feeds files to a target: what the fuzzers found, and what they begin with, in a build of any compiler.
//
//   replay FILE|DIRECTORY…
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

// Of this whole program with the sanitizers' own.
constexpr long kMostMemoryInKilobytes = 1L << 20;

std::vector<fs::path> inputs_of(int count, char** arguments) {
  std::vector<fs::path> inputs;
  for (int i = 1; i < count; ++i) {
    if (!fs::is_directory(arguments[i])) {
      inputs.emplace_back(arguments[i]);
      continue;
    }
    for (const auto& entry : fs::directory_iterator(arguments[i])) inputs.push_back(entry.path());
  }
  std::ranges::sort(inputs);
  return inputs;
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<fs::path> inputs = inputs_of(count, arguments);
  for (const fs::path& input : inputs) {
    std::printf("%s\n", input.c_str());  // the last one where the program ends here
    std::fflush(stdout);
    std::ifstream in(input, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  }
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  std::printf("%zu inputs, at most %ld MiB of memory\n", inputs.size(), used.ru_maxrss >> 10);
  if (inputs.empty() || used.ru_maxrss > kMostMemoryInKilobytes) return 1;
  return 0;
}
