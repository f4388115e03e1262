#include "golden.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace devsan::report {

void check_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(DEVSAN_SOURCE_DIR) + "/tests/unit/report/golden/" + name;
  if (std::getenv("DEVSAN_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << text;
    return;
  }
  std::stringstream expected;
  expected << std::ifstream(path).rdbuf();
  INFO(path);
  CHECK(text == expected.str());
}

}  // namespace devsan::report
