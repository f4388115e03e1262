// Files of released formats, which every later devsan must read as it did then. `devsan_trace_tests "[write-golden]"`
// writes those of the current version anew; it is only run when a version is added.
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "sample.h"

namespace devsan::trace::testing {
namespace {

namespace fs = std::filesystem;

const fs::path kGolden = fs::path(DEVSAN_SOURCE_DIR) / "tests" / "golden";

TEST_CASE("golden files read as they did when their format was released") {
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kGolden)) {
    if (entry.path().extension() != ".devsan") continue;
    fs::path text = entry.path();
    std::ifstream expected(text.replace_extension(".txt"));
    if (!expected) continue;  // of a test that has another way to look at it
    INFO(entry.path());
    std::ostringstream all;
    all << expected.rdbuf();
    CHECK(describe(read_trace(entry.path())) == all.str());
    ++files;
  }
  CHECK(files >= 1);
}

TEST_CASE("golden files of the current version are written", "[.][write-golden]") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  record_sample(*recorder);
  record_sample_of_training(*recorder);
  const fs::path file = kGolden / ("v" + std::to_string(kMajorVersion)) /
                        ("sample-" + std::to_string(kMajorVersion) + '.' + std::to_string(kMinorVersion) + ".devsan");
  fs::create_directories(file.parent_path());
  write_bytes(file, compacted(bytes_of(recorder->path())));
  fs::path text = file;
  std::ofstream(text.replace_extension(".txt")) << describe(read_trace(file));
}

}  // namespace
}  // namespace devsan::trace::testing
