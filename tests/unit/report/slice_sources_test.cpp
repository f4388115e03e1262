// Slices, candidates and patches over real source: that of the standard library and of torch, one file in 40, or all of
// them with DEVSAN_ALL_SOURCES=1. No failure stands behind them: nothing may crash, hang or leave its bounds.
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "report/fixes/patch.h"
#include "report/program/edits.h"
#include "report/program/expressions.h"
#include "report/program/positions.h"
#include "report/ranking/answer.h"
#include "report/slice/slicer.h"

namespace devsan::report {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kCallsOfFile = 6;

bool all_sources() {
  return std::getenv("DEVSAN_ALL_SOURCES") != nullptr;
}

// The folders of the standard library, and of torch where it is installed.
std::vector<fs::path> folders() {
  const std::string own = std::string(DEVSAN_SOURCE_DIR) + "/.venv/bin/python";
  const char* named = std::getenv("DEVSAN_TEST_PYTHON");
  const std::string python = named != nullptr ? named : fs::exists(own) ? own : "python3";
  const std::string command = "'" + python +
                              "' -c \"import sysconfig as s, os; p = s.get_paths(); print(p['stdlib']); "
                              "print(os.path.join(p['purelib'], 'torch'))\"";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::vector<fs::path> found(1);
  for (int c = std::fgetc(pipe.get()); c != EOF; c = std::fgetc(pipe.get())) {
    if (c == '\n') {
      found.emplace_back();
    } else {
      found.back() += static_cast<char>(c);
    }
  }
  std::erase_if(found, [](const fs::path& path) { return path.empty() || !fs::is_directory(path); });
  return found;
}

std::vector<fs::path> files() {
  std::vector<fs::path> found;
  for (const fs::path& folder : folders()) {
    std::error_code error;
    for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      if (at->path().filename() == "site-packages") at.disable_recursion_pending();
      if (at->path().extension() == ".py") found.push_back(at->path());
    }
  }
  std::sort(found.begin(), found.end());
  if (all_sources()) return found;
  std::vector<fs::path> some;
  for (std::size_t k = 0; k < found.size(); k += 40) some.push_back(found[k]);
  return some;
}

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

Frame frame_at(program::Node call, const std::string& path) {
  const program::Range range = call.range();
  Frame frame;
  frame.file = path;
  frame.line = range.line;
  frame.end_line = range.end_line;
  frame.column = range.column;
  frame.end_column = range.end_column;
  frame.function = std::string(slice::name_of_function(slice::body_of(call)));
  return frame;
}

Finding failing_at(program::Node call, const std::string& path) {
  Finding finding;
  finding.raised = true;
  finding.where = frame_at(call, path);
  finding.stack = {*finding.where};
  const program::CallParts parts = program::call_parts(call);
  for (const char* device : {"cpu", "cuda:0"}) {
    Operand operand;
    operand.arg = "x";
    operand.device = device;
    operand.odd = finding.operands.empty();
    const program::Node value = operand.odd || !parts.receiver() ? parts.positional.front() : parts.receiver();
    operand.text = operand.name = std::string(value.text());
    finding.operands.push_back(std::move(operand));
  }
  return finding;
}

std::vector<program::Node> some_calls(const slice::FileIndex& index) {
  std::vector<program::Node> calls = index.all_calls();
  std::erase_if(calls, [](program::Node call) { return program::call_parts(call).positional.empty(); });
  std::vector<program::Node> some;
  const std::size_t step = calls.size() / kCallsOfFile + 1;
  for (std::size_t k = 0; k < calls.size(); k += step) some.push_back(calls[k]);
  return some;
}

void check_candidates(const std::vector<ranking::Candidate>& candidates) {
  for (const ranking::Candidate& one : candidates) {
    const bool sound = one.line >= 1 && one.line <= one.file->line_count() && !one.places.empty() &&
                       std::all_of(one.features.begin(), one.features.end(), [](float x) { return std::isfinite(x); });
    if (!sound) FAIL_CHECK(one.file->path() << ":" << one.line);
  }
}

TEST_CASE("Slices of real source end within their bounds, and patches of it parse") {
  std::size_t slices = 0, bytes = 0, patches = 0;
  const auto began = std::chrono::steady_clock::now();
  for (const fs::path& path : files()) {
    Sources sources;
    sources[path.string()].text = text_of(path);
    bytes += sources[path.string()].text->size();
    slice::Codebase codebase(sources);
    const slice::FileIndex* index = codebase.file(path.string());
    REQUIRE(index != nullptr);
    for (const program::Node call : some_calls(*index)) {
      const Finding finding = failing_at(call, path.string());
      const slice::Code code(codebase, finding);
      const std::vector<slice::Place> places = slice::slice_of(finding, code);
      const std::vector<ranking::Candidate> candidates = ranking::candidates_of(finding, code, places);
      check_candidates(candidates);
      const auto ranked = ranking::rank(candidates, ranking::Model::standard());
      CHECK(ranked.size() == candidates.size());
      for (std::size_t k = 0; k < ranked.size() && k < 3; ++k) {
        if (fixes::patch_for(finding, *ranked[k].candidate, code)) ++patches;
      }
      ++slices;
    }
  }
  CHECK(slices > 50);
  if (!all_sources()) return;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::printf("%zu slices over %zu KB, %zu patches, %.1f s\n", slices, bytes / 1000, patches, took.count());
}

}  // namespace
}  // namespace devsan::report
