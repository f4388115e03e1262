#include "hooks/inprocess/source/python_loops.h"

#include <catch2/catch.hpp>

namespace devsan::hooks {
namespace {

TEST_CASE("What a loop goes through stands behind its `in`") {
  CHECK(iterated("for m in (a, b):") == "(a, b)");
  CHECK(iterated("for name, m in self.parts.items():") == "self.parts.items()");
  CHECK(iterated("self.nets = [m.to(device) for m in self.nets if m is not None]") == "self.nets");
  CHECK(iterated("return {k: v.to(device) for k, v in batch.items()}") == "batch.items()");
  CHECK(iterated("for m in nets: m.to(device)").empty());
  CHECK(iterated("m.to(device)").empty());
  CHECK(iterated("wait for it").empty());
}

TEST_CASE("Displays are lists that are written out, and no comprehensions") {
  CHECK(is_display("(a, b)"));
  CHECK(is_display("[self.actor]"));
  CHECK(is_display("{'a': self.a, 'b': self.b}"));
  CHECK(is_display("a, b"));
  CHECK_FALSE(is_display("[m for m in nets]"));
  CHECK_FALSE(is_display("nets"));
  CHECK_FALSE(is_display("[a] + rest"));
  CHECK_FALSE(is_display("build(a, b)"));
  CHECK_FALSE(is_display(""));
}

TEST_CASE("Views and wrappers of a container lead to itself") {
  CHECK(unwrapped("enumerate(self.nets)") == "self.nets");
  CHECK(unwrapped("list(self.parts.values())") == "self.parts");
  CHECK(unwrapped("enumerate(nets, 1)") == "nets");
  CHECK(unwrapped(" (a, b) ") == "(a, b)");
  CHECK(unwrapped("listed(nets)") == "listed(nets)");
}

}  // namespace
}  // namespace devsan::hooks
