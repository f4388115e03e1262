#include "hooks/inprocess/source/python_text.h"

#include <catch2/catch.hpp>

namespace devsan::hooks {
namespace {

TEST_CASE("The value of one target of an assignment is found") {
  CHECK(assigned_to("self.home = tensor.device", "self.home") == "tensor.device");
  CHECK(assigned_to("self.name, self.device = name, device", "self.device") == "device");
  CHECK(assigned_to("self.device: str = 'cpu'", "self.device") == "'cpu'");
  CHECK(assigned_to("self.a, self.device = pair", "self.device") == "");
  CHECK_FALSE(assigned_to("self.device == other", "self.device"));
  CHECK_FALSE(assigned_to("f(device=self.device)", "self.device"));
  CHECK_FALSE(assigned_to("x = self.device", "self.device"));
  CHECK_FALSE(assigned_to("self.device += 1", "self.device"));
}

TEST_CASE("What a statement assigns stands behind its last equals sign") {
  CHECK(assigned_text("a = b = c.d") == "c.d");
  CHECK(assigned_text("a[k == 1] = f(x=1)") == "f(x=1)");
  CHECK(assigned_text("a: int = b") == "b");
  CHECK(assigned_text("a = b if c == d else e <= f") == "b if c == d else e <= f");
  CHECK(assigned_text("a += b") == "a += b");
  CHECK(assigned_text("x = '=' + y") == "'=' + y");
  CHECK(assigned_text("f(a, b)") == "f(a, b)");
}

TEST_CASE("A loop's variables come from what it goes through") {
  CHECK(assigned_text("for k, v in items.values():") == "items.values():");
  CHECK(assigned_text("async for batch in loader:") == "loader:");
  CHECK(assigned_text("with open(x) as f:") == "with open(x) as f:");
}

TEST_CASE("Arguments are split at their own commas") {
  const auto arguments = arguments_at("f(a, g(b, c), [d, 'e, f'], key=h)", 1);
  REQUIRE(arguments);
  CHECK(*arguments == std::vector<std::string>{"a", "g(b, c)", "[d, 'e, f']", "key=h"});
  CHECK_FALSE(arguments_at("f(a, b", 1));
  CHECK(arguments_at("f()", 1)->empty());
}

TEST_CASE("A line belongs to the function and the class around it, whatever stands between") {
  const SourceLines lines(
      "import torch\n\nclass Net:\n    def make(self):\n        if self:\n# why\n            x = f(1)\n\n    size = "
      "f(2)\n"
      "def f(n):\n    return n\nf(3)");
  CHECK(qualified_function(lines, 7) == "Net.make");
  CHECK(qualified_function(lines, 9) == "<module>");
  CHECK(qualified_function(lines, 11) == "f");
  CHECK(qualified_function(lines, 12) == "<module>");
  CHECK(enclosing_line(lines, 7, "class ") == 3);
}

TEST_CASE("A function ends where a line is indented no more than its definition") {
  const SourceLines lines(
      "async def f(n):\n    for k in n:\n        g(k)\n\n        h(k)\n# why\n    return n\n\ndef g(\n    a,\n):\n    "
      "return a\nx = f(1)\ny = x");
  CHECK(qualified_function(lines, 5) == "f");
  CHECK(enclosing_line(lines, 5, "def ") == 1);
  CHECK(end_of_function(lines, 3) == 7);
  CHECK(qualified_function(lines, 12) == "g");
  CHECK(end_of_function(lines, 12) == 12);
  CHECK(end_of_function(lines, 13) == 14);
}

TEST_CASE("A call is no definition, no comment and no longer name") {
  CHECK(call_in("x = torch.jit.trace(f, a)", "jit.trace") == 10);
  CHECK(call_in("def trace(f):", "trace") == std::string_view::npos);
  CHECK(call_in("x = 1  # trace(f)", "trace") == std::string_view::npos);
  CHECK(call_in("retrace(f)", "trace") == std::string_view::npos);
  CHECK(call_in("trace_module(f)", "trace") == std::string_view::npos);
}

TEST_CASE("A statement goes on to the last bracket that is closed") {
  const SourceLines lines("a = 1\nx = f(  # why\n    1,\n    g(2))\nb = 2");
  CHECK(lines.count() == 5);
  CHECK(statement_at(lines, 1) == "a = 1");
  CHECK(statement_at(lines, 2) == "x = f( 1, g(2))");
  CHECK(lines[0].empty());
  CHECK(lines[6].empty());
}

TEST_CASE("The lines that assign to a variable are found, and what a statement goes on to") {
  const SourceLines lines(
      "def f(x):\n    a = x\n    b = g(\n        a,\n    )\n    if b:\n        a, c = 1, b\n    ab = a");
  CHECK(assignments_of(lines, "a", 2, 9) == std::vector<int>{2, 7});
  CHECK(assignments_of(lines, "b", 2, 9) == std::vector<int>{3});
  CHECK(assignments_of(lines, "x", 2, 9).empty());
  CHECK(end_of_statement(lines, 3) == 5);
  const SourceLines call("x = f(\n    x=1,\n)\nmix = 2\nx = 2");
  CHECK(assignments_of(call, "x", 1, 6) == std::vector<int>{1, 5});
}

TEST_CASE("What each turn of a loop binds stands between its keywords") {
  CHECK(loop_targets("for k, (x, y) in enumerate(pairs):") == "k, (x, y)");
  CHECK(loop_targets("x = 3 if y in z else 4").empty());
  CHECK(loop_targets("for").empty());
}

TEST_CASE("A variable has one value above a line where the function assigns it once") {
  const SourceLines lines(
      "def f(state):\n"
      "    part = state['a']\n"
      "    x = part\n"
      "    x = 2\n"
      "    return part, x\n");
  CHECK(only_value_above(lines, 5, "part") == "state['a']");
  CHECK(only_value_above(lines, 5, "x").empty());
  CHECK(only_value_above(lines, 4, "x") == "part");
  CHECK(only_value_above(lines, 2, "part").empty());
  CHECK(only_value_above(lines, 5, "state").empty());
}

}  // namespace
}  // namespace devsan::hooks
