#include "hooks/inprocess/source/python_calls.h"

#include <catch2/catch.hpp>

#include "hooks/inprocess/source/python_text.h"

namespace devsan::hooks {
namespace {

// By whom, and what.
std::pair<Given::By, std::string> given(std::string_view definition, std::string_view name, std::string_view call) {
  const auto parameter = parameter_of(definition, name);
  const auto text = call_text(call);
  REQUIRE(parameter);
  REQUIRE(text);
  const Given found = given_for(*parameter, *text, is_bound(definition));
  return {found.by, found.text};
}

std::pair<Given::By, std::string> by(Given::By how, std::string_view text = "") {
  return {how, std::string(text)};
}

TEST_CASE("A call is taken apart at its last pair of brackets") {
  const auto call = call_text("nets[key(a)](x, device=f(b, c))");
  REQUIRE(call);
  CHECK(call->callee == "nets[key(a)]");
  CHECK(call->arguments == std::vector<std::string>{"x", "device=f(b, c)"});
  CHECK(call_text("make()")->arguments.empty());
  CHECK_FALSE(call_text("(a, b)"));
  CHECK_FALSE(call_text("make(a) + b"));
  CHECK_FALSE(call_text("make(a"));
  CHECK_FALSE(call_text(""));
}

TEST_CASE("What a call gives for a parameter is found by name and by position") {
  const std::string_view fill = "def fill(n, device='cpu', *, kind: str = \"a, b\"):";
  CHECK(given(fill, "device", "fill(3, dev)") == by(Given::By::value, "dev"));
  CHECK(given(fill, "device", "fill(device = self.home, n=3)") == by(Given::By::value, "self.home"));
  CHECK(given(fill, "device", "fill(3)") == by(Given::By::standard, "'cpu'"));
  CHECK(given(fill, "kind", "fill(3, dev)") == by(Given::By::standard, "\"a, b\""));
  CHECK(given(fill, "n", "fill()") == by(Given::By::nobody));
  CHECK(given("def fill(n, /, device):", "device", "fill(3, a == b)") == by(Given::By::value, "a == b"));
}

TEST_CASE("The object that a method is called on takes no place among a call's arguments") {
  const std::string_view init = "def __init__(self, n, name='q', device='cpu'):";
  CHECK(given(init, "name", "QNetwork(4, dev)") == by(Given::By::value, "dev"));
  CHECK(given(init, "device", "QNetwork(4, dev)") == by(Given::By::standard, "'cpu'"));
  CHECK(given(init, "name", "Base.__init__(self, 4, dev)") == by(Given::By::value, "dev"));
  CHECK(given(init, "device", "super().__init__(4, device=dev)") == by(Given::By::value, "dev"));
}

TEST_CASE("What a call unpacks may hold anything, unless it hands on all that it got") {
  const std::string_view fill = "def fill(n, device='cpu'):";
  CHECK(given(fill, "device", "fill(*sizes)") == by(Given::By::others));
  CHECK(given(fill, "device", "fn(*args, **kwargs)") == by(Given::By::others));
  CHECK(given(fill, "device", "fill(3, **options)") == by(Given::By::nobody));
  CHECK(given(fill, "device", "fill(*sizes, dev)") == by(Given::By::nobody));
  CHECK(given(fill, "device", "fill(*sizes, device=dev)") == by(Given::By::value, "dev"));
  CHECK(given("def run(self, n, device=None):", "device", "fn(self, *args)") == by(Given::By::others));
}

TEST_CASE("A parameter is none of what follows its name") {
  CHECK_FALSE(parameter_of("def fill(n, device='cpu'):", "cpu"));
  CHECK_FALSE(parameter_of("def fill(n, device='cpu'):", "dev"));
  CHECK(parameter_of("def fill(n, *sizes, device: str):", "device")->index == std::nullopt);
  CHECK(parameter_of("def fill(n, *sizes, device: str):", "device")->standard.empty());
  CHECK(is_bound("def fill(cls, n):"));
  CHECK_FALSE(is_bound("def fill():"));
}

trace::Position between(int line, int column, int end_line, int end_column) {
  return {trace::StringId::none, trace::StringId::none, line, end_line, column, end_column};
}

TEST_CASE("The text of a call over several lines has no comments") {
  const SourceLines lines("x = make(3,  # how many (\n         '#',\n         device=dev) + 1\n");
  CHECK(code_text(lines, between(1, 4, 3, 20)) == "make(3, '#', device=dev)");
  CHECK(code_text(lines, between(1, 4, 1, 99)).empty());
  CHECK(code_text(lines, between(1, -1, 1, 4)).empty());
}

}  // namespace
}  // namespace devsan::hooks
