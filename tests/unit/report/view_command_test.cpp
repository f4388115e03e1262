#include "report/view_command.h"

#include <CLI/CLI.hpp>
#include <catch2/catch.hpp>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "trace_builder.h"

namespace devsan::report {
namespace {

using Catch::Matchers::Contains;

struct Viewed {
  int status = 0;
  std::string out;
  std::string error;
};

// `devsan view ARGS…`, in this process.
Viewed viewed(std::vector<std::string> args) {
  CLI::App app;
  Viewed result;
  add_view_command(app, result.status);
  std::ostringstream out;
  std::ostringstream error;
  auto* const old_out = std::cout.rdbuf(out.rdbuf());
  auto* const old_error = std::cerr.rdbuf(error.rdbuf());
  std::vector<std::string> reversed(args.rbegin(), args.rend());
  reversed.push_back("view");
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError&) {
    result.status = 2;
  }
  std::cout.rdbuf(old_out);
  std::cerr.rdbuf(old_error);
  result.out = out.str();
  result.error = error.str();
  return result;
}

void record_one(TraceBuilder& builder) {
  builder.meeting({.frames = {{"/srv/app/train.py", 5, "main"}},
                   .operands = {{"self", "cuda:0", {2}, "x"}, {"other", "cpu", {2}, "y"}}});
  builder.recorder().close(trace::CloseMark::exited);
}

TEST_CASE("A directory of traces is shown") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  record_one(builder);
  const Viewed result = viewed({directory.path().string()});
  CHECK(result.status == 0);
  CHECK_THAT(result.out, Contains("error[device-mismatch]") && Contains("/srv/app/train.py:5"));
  CHECK(result.error.empty());
}

TEST_CASE("JSON goes to the standard output or to a file, with the path before or behind") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  record_one(builder);
  const std::string path = directory.path().string();
  const std::string file = path + "/report.json";
  CHECK(nlohmann::json::parse(viewed({path, "--json"}).out)["findings"].size() == 1);
  CHECK(nlohmann::json::parse(viewed({"--json", path}).out)["findings"].size() == 1);
  CHECK(viewed({path, "--json", file}).out.empty());
  CHECK(nlohmann::json::parse(std::ifstream(file))["schema"] == "devsan-report/1");
}

TEST_CASE("Facts go to the standard output or to a file, in place of the report") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  record_one(builder);
  const std::string path = directory.path().string();
  const std::string file = path + "/facts.json";
  CHECK(nlohmann::json::parse(viewed({path, "--facts"}).out)["meetings"].size() == 1);
  CHECK(nlohmann::json::parse(viewed({"--facts", path}).out)["meetings"].size() == 1);
  CHECK(viewed({path, "--facts", file}).out.empty());
  CHECK(nlohmann::json::parse(std::ifstream(file))["schema"] == "devsan-facts/1");
  CHECK(viewed({path, "--facts", "--json"}).status == 2);
}

TEST_CASE("A trace is never written to") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  record_one(builder);
  const std::string trace = builder.file().string();
  const auto size = std::filesystem::file_size(trace);
  const Viewed result = viewed({"--json", trace, directory.path().string()});
  CHECK(result.status == 0);
  CHECK(std::filesystem::file_size(trace) == size);
  CHECK(nlohmann::json::parse(result.out)["findings"].size() == 1);
}

TEST_CASE("A report that cannot be written is an error") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  const Viewed result = viewed({directory.path().string(), "--json", directory.path().string() + "/no/such/file"});
  CHECK(result.status == 1);
  CHECK_THAT(result.error, Contains("cannot write"));
}

TEST_CASE("Nothing readable is an error that names each path") {
  const TemporaryDirectory directory;
  const std::string empty = directory.path().string();
  CHECK(viewed({empty}).status == 1);
  CHECK_THAT(viewed({empty}).error, Contains(empty));
  CHECK(viewed({empty + "/none"}).status == 1);
  CHECK_THAT(viewed({empty + "/none"}).error, Contains(empty + "/none"));
  std::ofstream(empty + "/letter.devsan") << "Dear reader,\n";
  const Viewed result = viewed({empty + "/letter.devsan"});
  CHECK(result.status == 1);
  CHECK_THAT(result.error, Contains("letter.devsan: "));
}

TEST_CASE("A foreign file beside a good trace is told as damage") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  record_one(builder);
  std::ofstream(directory.path() / "rank-.1.devsan") << "Dear reader,\n";
  const Viewed result = viewed({directory.path().string()});
  CHECK(result.status == 0);
  CHECK_THAT(result.out, Contains("device-mismatch") && Contains("rank-.1.devsan"));
}

TEST_CASE("The trace of a process that did not exit by itself is shown as such") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  auto& recorder = builder.recorder();
  trace::ThreadRing* ring = recorder.acquire_ring(11, "MainThread");
  REQUIRE(ring != nullptr);
  ring->entries[0] = {recorder.add_operator("aten::addmm"),
                      trace::DeviceSlot::none,
                      0,
                      builder.site({"/srv/app/train.py", 9, "main"}),
                      2,
                      0};
  ring->next = 1;
  const Viewed result = viewed({directory.path().string()});
  CHECK(result.status == 0);
  CHECK_THAT(result.out, Contains("did not exit by itself") && Contains("aten::addmm") && Contains("train.py:9"));
}

TEST_CASE("Wrong usage is told from bad input") {
  CHECK(viewed({}).status == 2);
  CHECK(viewed({"--color", "sometimes", "x"}).status == 2);
  CHECK(viewed({"--no-such-option", "x"}).status == 2);
}

}  // namespace
}  // namespace devsan::report
