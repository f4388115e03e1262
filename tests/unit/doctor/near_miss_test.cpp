#include "doctor/near_miss.h"

#include <catch2/catch.hpp>

using devsan::doctor::likely_meant;
using devsan::doctor::nearest;

TEST_CASE("a slip of the finger finds the word that was meant") {
  const std::vector<std::string> known = {"--out", "--quiet", "--sim", "--sim-memory"};
  CHECK(nearest("--quite", known) == "--quiet");
  CHECK(nearest("--sim-memry", known) == "--sim-memory");
  CHECK(nearest("--verbose", known).empty());
  CHECK(nearest("", known).empty());
  CHECK(nearest("biuld", {"build", "run"}) == "build");
}

TEST_CASE("a word in other letters, cut short, or with more around it finds the one that was meant") {
  const std::vector<std::string> known = {"Adam", "AdamW", "SGD", "NO_WRAP", "SIZE_BASED_WRAP"};
  CHECK(likely_meant("adamw", known) == "AdamW");
  CHECK(likely_meant("FusedAdam", known) == "Adam");
  CHECK(likely_meant("size_based", known) == "SIZE_BASED_WRAP");
  CHECK(likely_meant("si", known).empty());
  CHECK(likely_meant(std::string(100'000, 'a'), known).empty());
}
