#include "report/model/call_text.h"

#include <catch2/catch.hpp>
#include <string>

namespace devsan::report {
namespace {

using Strings = std::vector<std::string>;

Strings binary(std::string_view text) {
  const auto parts = split_binary(text);
  if (!parts) return {};
  return {std::string(parts->left), std::string(parts->right)};
}

// The receiver, then the arguments.
Strings call(std::string_view text) {
  const auto parts = split_call(text);
  if (!parts) return {};
  Strings result = {std::string(parts->receiver)};
  for (const ArgumentText& argument : parts->arguments) {
    result.push_back((argument.keyword.empty() ? "" : std::string(argument.keyword) + ": ") +
                     std::string(argument.text));
  }
  return result;
}

TEST_CASE("The operator that is applied last has the operands") {
  CHECK(binary("s + self.bias") == Strings{"s", "self.bias"});
  CHECK(binary("a + b * c") == Strings{"a", "b * c"});
  CHECK(binary("a - b - c") == Strings{"a - b", "c"});
  CHECK(binary("a ** b ** c") == Strings{"a", "b ** c"});
  CHECK(binary("vocab[:, None] == self.ids[None, :]") == Strings{"vocab[:, None]", "self.ids[None, :]"});
  CHECK(binary("x @ w.t()") == Strings{"x", "w.t()"});
  CHECK(binary("1. / scale") == Strings{"1.", "scale"});
  CHECK(binary("x += y * 2") == Strings{"x", "y * 2"});
  CHECK(binary("x <= y") == Strings{"x", "y"});
  CHECK(binary("größe*2") == Strings{"größe", "2"});
}

TEST_CASE("Signs, exponents and what stands in brackets or strings are no operators") {
  CHECK(binary("-x") == Strings{});
  CHECK(binary("x * -y") == Strings{"x", "-y"});
  CHECK(binary("x * 1e-6") == Strings{"x", "1e-6"});
  CHECK(binary("f(a + b)") == Strings{});
  CHECK(binary("d['a + b']") == Strings{});
  CHECK(binary("d['it\\'s'] + x") == Strings{"d['it\\'s']", "x"});
}

TEST_CASE("What is more than one operation is not taken apart") {
  CHECK(binary("a < b < c") == Strings{});
  CHECK(binary("a if b else c + d") == Strings{});
  CHECK(binary("not a + b") == Strings{});
  CHECK(binary("y = a + b") == Strings{});
  CHECK(binary("a, b + c") == Strings{});
  CHECK(binary("(a + b") == Strings{});
  CHECK(binary("a + b  # why") == Strings{});
  CHECK(binary("a +") == Strings{});
  CHECK(binary("") == Strings{});
}

TEST_CASE("A call has a receiver and arguments") {
  CHECK(call("sum(w * m for w, m in zip(a, b))").empty());  // its comma parts no arguments
  CHECK(call("x.grad.mul_(1. / scale)") == Strings{"x.grad", "1. / scale"});
  CHECK(call("torch.where(a > 0, f(b, c), d)") == Strings{"torch", "a > 0", "f(b, c)", "d"});
  CHECK(call("f(x)") == Strings{"", "x"});
  CHECK(call("x.sum()") == Strings{"x"});
  CHECK(call("x.f(y)(z)") == Strings{"x", "z"});
  CHECK(call("a.add(b, alpha=2)") == Strings{"a", "b", "alpha: 2"});
  CHECK(call("f(a == b)") == Strings{"", "a == b"});
  CHECK(call("table[i, j + 1]") == Strings{"table", "i", "j + 1"});
  CHECK(call("x.at[i]") == Strings{"x.at", "i"});
}

TEST_CASE("What is no call is not taken apart") {
  CHECK(call("x") == Strings{});
  CHECK(call("(x)") == Strings{});
  CHECK(call("[x, y]") == Strings{});
  CHECK(call("a + f(x)") == Strings{});
  CHECK(call("f(x") == Strings{});
  CHECK(call("") == Strings{});
}

TEST_CASE("A list display has elements, and a comprehension has none") {
  const auto elements = split_display("[x, f(y, z), (1, 2)]");
  REQUIRE(elements);
  CHECK(Strings(elements->begin(), elements->end()) == Strings{"x", "f(y, z)", "(1, 2)"});
  CHECK_FALSE(split_display("[x for x in xs]"));
  CHECK_FALSE(split_display("xs"));
}

TEST_CASE("Literals are told from expressions") {
  for (const char* text : {"1", "-1", "1e-6", "None", "True", "'sum'", "...", ":", "1:2"}) CHECK(is_literal(text));
  for (const char* text : {"x", "x1", "_", "f(1)", "i:j", "(1)"}) CHECK_FALSE(is_literal(text));
}

}  // namespace
}  // namespace devsan::report
