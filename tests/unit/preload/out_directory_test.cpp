#include "preload/out_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

using devsan::Ancestry;
using devsan::choose_directory;

namespace {

std::string chosen(const char* wanted, const char* ancestor = "") {
  Ancestry ancestry;
  ancestry.directory.append(ancestor);
  return choose_directory(wanted, ancestry).c_str();
}

std::string working_directory() {
  return std::filesystem::current_path().string();
}

}  // namespace

TEST_CASE("an absolute directory is taken as it is, whatever an ancestor writes to") {
  CHECK(chosen("/some where/out") == "/some where/out");
  CHECK(chosen("/some where/out", "/ancestor's") == "/some where/out");
}

TEST_CASE("a relative directory is that of the first process") {
  CHECK(chosen("out") == working_directory() + "/out");
  CHECK(chosen("out", "/first/out") == "/first/out");
}

TEST_CASE("without a wish the directory is an ancestor's, or a new one by time and pid") {
  CHECK(chosen("", "/first/devsan-out/1") == "/first/devsan-out/1");
  const std::string made = chosen("");
  CHECK_THAT(made, Catch::Matchers::StartsWith(working_directory() + "/devsan-out/20"));
  CHECK_THAT(made, Catch::Matchers::EndsWith("-" + std::to_string(getpid())));
}
