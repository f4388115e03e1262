#include "doctor/near_miss.h"

#include <catch2/catch.hpp>

using devsan::doctor::nearest;

TEST_CASE("a slip of the finger finds the word that was meant") {
  const std::vector<std::string> known = {"--out", "--quiet", "--sim", "--sim-memory"};
  CHECK(nearest("--quite", known) == "--quiet");
  CHECK(nearest("--sim-memry", known) == "--sim-memory");
  CHECK(nearest("--verbose", known).empty());
  CHECK(nearest("", known).empty());
  CHECK(nearest("biuld", {"build", "run"}) == "build");
}
