#include "doctor/versions/pep440.h"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace devsan::doctor;

namespace {

// What the package `packaging` says of these.
const std::vector<std::string> kInOrder = {
    "1.0.dev1",  "1.0a1.dev2", "1.0a1", "1.0a2",          "1.0b1",     "1.0rc1.dev3", "1.0rc1", "1.0",  "1.0+abc",
    "1.0+abc.5", "1.0+abc.10", "1.0+5", "1.0.post1.dev1", "1.0.post1", "1.0.1",       "1.1",    "1.10", "1!0.5"};
const std::vector<std::string> kVersions = {"0.15.3",    "0.15.4",    "0.16.1",       "0.16.2",       "1.12.0+cu113",
                                            "1.12",      "1.12.1",    "2.2.2+cpu",    "2.2.2.post1",  "0.48.0",
                                            "0.48.1rc1", "0.49",      "1.4.2",        "1.4.9",        "1.5",
                                            "2.0",       "1.0rc1",    "1.0.dev1",     "1.0",          "1.0+cu121",
                                            "1.0.post1", "1.0.post2", "0.36.0.post2", "0.36.0.post3", "0.9"};

struct RangeCase {
  std::string range;
  std::vector<std::string> contained;  // of kVersions
};
const std::vector<RangeCase> kRanges = {
    {">=0.15.4,<0.16.2", {"0.15.4", "0.16.1"}},
    {"==1.12.0", {"1.12.0+cu113", "1.12"}},
    {"==1.12", {"1.12.0+cu113", "1.12"}},
    {"<=2.2.2",
     {"0.15.3",   "0.15.4",    "0.16.1",    "0.16.2",    "1.12.0+cu113", "1.12",         "1.12.1",       "2.2.2+cpu",
      "0.48.0",   "0.48.1rc1", "0.49",      "1.4.2",     "1.4.9",        "1.5",          "2.0",          "1.0rc1",
      "1.0.dev1", "1.0",       "1.0+cu121", "1.0.post1", "1.0.post2",    "0.36.0.post2", "0.36.0.post3", "0.9"}},
    {"==0.48.*", {"0.48.0", "0.48.1rc1"}},
    {"!=0.48.*",
     {"0.15.3",      "0.15.4",    "0.16.1",    "0.16.2",    "1.12.0+cu113", "1.12",         "1.12.1", "2.2.2+cpu",
      "2.2.2.post1", "0.49",      "1.4.2",     "1.4.9",     "1.5",          "2.0",          "1.0rc1", "1.0.dev1",
      "1.0",         "1.0+cu121", "1.0.post1", "1.0.post2", "0.36.0.post2", "0.36.0.post3", "0.9"}},
    {"~=1.4.2", {"1.4.2", "1.4.9"}},
    {"~=1.4", {"1.12.0+cu113", "1.12", "1.12.1", "1.4.2", "1.4.9", "1.5"}},
    {"<1.0",
     {"0.15.3", "0.15.4", "0.16.1", "0.16.2", "0.48.0", "0.48.1rc1", "0.49", "0.36.0.post2", "0.36.0.post3", "0.9"}},
    {">1.0", {"1.12.0+cu113", "1.12", "1.12.1", "2.2.2+cpu", "2.2.2.post1", "1.4.2", "1.4.9", "1.5", "2.0"}},
    {"<1.0rc2",
     {"0.15.3", "0.15.4", "0.16.1", "0.16.2", "0.48.0", "0.48.1rc1", "0.49", "1.0rc1", "1.0.dev1", "0.36.0.post2",
      "0.36.0.post3", "0.9"}},
    {">1.0.post1",
     {"1.12.0+cu113", "1.12", "1.12.1", "2.2.2+cpu", "2.2.2.post1", "1.4.2", "1.4.9", "1.5", "2.0", "1.0.post2"}},
    {"==1.0+cu121", {"1.0+cu121"}},
    {">=1.0",
     {"1.12.0+cu113", "1.12", "1.12.1", "2.2.2+cpu", "2.2.2.post1", "1.4.2", "1.4.9", "1.5", "2.0", "1.0", "1.0+cu121",
      "1.0.post1", "1.0.post2"}},
    {"<=1.0",
     {"0.15.3", "0.15.4", "0.16.1", "0.16.2", "0.48.0", "0.48.1rc1", "0.49", "1.0rc1", "1.0.dev1", "1.0", "1.0+cu121",
      "0.36.0.post2", "0.36.0.post3", "0.9"}},
    {">=0.34.0,<=0.36.0.post2", {"0.36.0.post2"}},
    {"!=1.0",
     {"0.15.3",      "0.15.4",   "0.16.1",    "0.16.2",    "1.12.0+cu113", "1.12",         "1.12.1", "2.2.2+cpu",
      "2.2.2.post1", "0.48.0",   "0.48.1rc1", "0.49",      "1.4.2",        "1.4.9",        "1.5",    "2.0",
      "1.0rc1",      "1.0.dev1", "1.0.post1", "1.0.post2", "0.36.0.post2", "0.36.0.post3", "0.9"}},
};

}  // namespace

TEST_CASE("versions stand in the order of PEP 440") {
  for (std::size_t i = 0; i < kInOrder.size(); ++i) {
    for (std::size_t j = 0; j < kInOrder.size(); ++j) {
      INFO(kInOrder[i] << " and " << kInOrder[j]);
      CHECK((compare(*parse_version(kInOrder[i]), *parse_version(kInOrder[j])) < 0) == (i < j));
    }
  }
}

TEST_CASE("one version may be written in several ways") {
  const std::pair<const char*, const char*> same[] = {{"1.0", "1.0.0"},         {"v1.0", "1.0"},
                                                      {"1.0-1", "1.0.post1"},   {"1.0RC1", "1.0c1"},
                                                      {"1.0-alpha.1", "1.0a1"}, {"1.0.preview_2", "1.0rc2"},
                                                      {"1.0a", "1.0a0"},        {"1.0.rev3", "1.0.post3"},
                                                      {" 1.0 ", "1.0"},         {"1.0+CU_121", "1.0+cu.121"}};
  for (const auto& [a, b] : same) {
    INFO(a << " and " << b);
    REQUIRE(parse_version(a));
    CHECK((compare(*parse_version(a), *parse_version(b)) == 0));
  }
}

TEST_CASE("what is no version is none") {
  for (const char* text : {"", "main", "1.", "1..2", "1.0+", "1.0 beta x", "1.0.*", "99999999999999999999"}) {
    INFO(text);
    CHECK_FALSE(parse_version(text));
  }
}

TEST_CASE("a range contains what PEP 440 says") {
  for (const RangeCase& one : kRanges) {
    const std::optional<VersionRange> range = VersionRange::parse(one.range);
    REQUIRE(range);
    for (const std::string& version : kVersions) {
      INFO(version << " in " << one.range);
      const bool expected = std::ranges::find(one.contained, version) != one.contained.end();
      CHECK(range->contains(*parse_version(version)) == expected);
    }
  }
}

TEST_CASE("what is no range is none") {
  for (const char* text : {"", "1.0", "=1.0", "<1.0,", "~=1", ">1.*", "==x"}) {
    INFO(text);
    CHECK_FALSE(VersionRange::parse(text));
  }
}
