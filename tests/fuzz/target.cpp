#include "target.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "packing.h"

namespace devsan::fuzz {
namespace {

namespace fs = std::filesystem;

class Scratch {
 public:
  Scratch() {
    const fs::path memory = "/dev/shm";
    std::string name =
        ((fs::is_directory(memory) ? memory : fs::temp_directory_path()) / "devsan-fuzz-XXXXXX").string();
    require(mkdtemp(name.data()) != nullptr, "a directory for files can be made");
    path = name;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  fs::path path;
};

// What is said to be lost is there, or is missing behind the end of the file.
void require_true_damage(const report::Report& report) {
  for (const report::Damage& damage : report.damage) {
    require(!damage.reason.empty(), "damage has a reason");
    require(damage.offset <= kMostBytes || damage.bytes == 0, "damage is at a place of the file");
  }
}

}  // namespace

void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "This does not hold: %s\n", promise);
  std::abort();
}

const fs::path& scratch() {
  static const Scratch directory;
  return directory.path;
}

fs::path write_scratch(const std::string& name, std::span<const std::uint8_t> bytes) {
  const fs::path path = scratch() / name;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return path;
}

report::Reading read_packed(std::span<const std::uint8_t> input, report::FactsOfRun* facts) {
  const std::vector<Bytes> files = unpacked(input);
  for (std::size_t i = 0; i < kMostFiles; ++i) {
    const std::string name = "rank" + std::to_string(i) + ".1.devsan";
    if (i < files.size()) {
      write_scratch(name, files[i]);
    } else {
      fs::remove(scratch() / name);
    }
  }
  const fs::path paths[] = {scratch()};
  report::Reading reading = report::read_traces(paths, nullptr, report::RunsRead::all, facts);
  require(reading.readable + reading.report.damage.size() >= files.size(), "each file is read or told of");
  require_true_damage(reading.report);
  return reading;
}

}  // namespace devsan::fuzz
