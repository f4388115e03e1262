// Attributes of modules that a library has overwritten.
#include <catch2/catch.hpp>

#include "report/findings/build_attributes.h"
#include "trace_builder.h"

namespace devsan::report {
namespace {

// How many findings a write makes in a job of so many processes.
std::size_t told(const char* before, const char* behind, int world_size) {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  trace::Recorder& recorder = builder.recorder();
  recorder.add_rank(0, world_size);
  trace::AttributeWritePayload write{};
  write.type = recorder.intern_string("Attention");
  write.name = recorder.intern_string("num_heads");
  write.old_value = recorder.intern_string(before);
  write.new_value = recorder.intern_string(behind);
  write.last.file = recorder.intern_string("/site-packages/library/__init__.py");
  write.last.line = 3;
  recorder.add_attribute_write(write);
  const trace::TraceFile trace = builder.read();
  REQUIRE(trace.attribute_writes().size() == 1);
  return build_attributes(trace).size();
}

TEST_CASE("A number that a library divides among ranks names no device") {
  CHECK(told("12", "6", 2) == 0);
  CHECK(told("8", "2", 4) == 0);
  CHECK(told("8", "4", 4) == 0);
  CHECK(told("10", "3", 4) == 0);  // the ranks' parts differ
  CHECK(told("12", "6", 1) == 1);
  CHECK(told("12", "5", 2) == 1);
}

TEST_CASE("A number that no device has is none of one") {
  CHECK(told("4096", "100", 2) == 0);
  CHECK(told("30", "31", 64) == 1);
}

TEST_CASE("A number that a library counts on may be that of a device") {
  CHECK(told("1", "2", 2) == 1);
  CHECK(told("1", "0", 2) == 1);
  CHECK(told("cuda:1", "cuda:0", 2) == 1);
}

}  // namespace
}  // namespace devsan::report
