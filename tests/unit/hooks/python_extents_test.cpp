#include "hooks/inprocess/source/python_extents.h"

#include <catch2/catch.hpp>
#include <string>

namespace devsan::hooks {
namespace {

// The text of a part of the first statement of a text, if it stands in one line; "?" where it is not told.
std::string part_text(std::string_view text, SourcePart part, int rank, int count, Caller caller) {
  const auto statement = statement_around(text, 1);
  REQUIRE(statement);
  const auto extent = extent_of(text, *statement, caller, part, rank, count);
  if (!extent) return "?";
  CHECK((extent->line == 1 && extent->end_line == 1));
  return std::string(text.substr(static_cast<std::size_t>(extent->column),
                                 static_cast<std::size_t>(extent->end_column - extent->column)));
}

std::string call(std::string_view text, int rank, int count, Caller caller = Caller::function) {
  return part_text(text, SourcePart::call, rank, count, caller);
}

std::string read(std::string_view text, int rank, int count, Caller caller = Caller::function) {
  return part_text(text, SourcePart::read, rank, count, caller);
}

std::string stored(std::string_view text, int rank, int count) {
  return part_text(text, SourcePart::store, rank, count, Caller::function);
}

TEST_CASE("Calls are made in the order in which they end") {
  constexpr std::string_view kNested = "    y = self.lin(x.to(dev), z[0].sum(1)).detach()  # f()";
  CHECK(call(kNested, 0, 4) == "x.to(dev)");
  CHECK(call(kNested, 1, 4) == "z[0].sum(1)");
  CHECK(call(kNested, 2, 4) == "self.lin(x.to(dev), z[0].sum(1))");
  CHECK(call(kNested, 3, 4) == "self.lin(x.to(dev), z[0].sum(1)).detach()");
  CHECK(call("if not (a + b).any() and -c.f(')'): g()", 1, 3) == "c.f(')')");
  CHECK(call("for k in (f(), 'a' 'b'.g()): pass", 1, 2) == "'a' 'b'.g()");
}

TEST_CASE("Where byte code and text have not as many calls, none is told") {
  CHECK(call("x = f(g())", 0, 1) == "?");
  CHECK(call("x = f(g())", 2, 3) == "?");
  CHECK(call("x = f(f'{g()}')", 0, 1) == "?");
  CHECK(call("x = f(f'{y}')", 0, 1) == "f(f'{y}')");
  CHECK(call("x = f(lambda: g(lambda: h()))", 0, 1) == "?");
  CHECK(call("@f(1)", 0, 1) == "?");
  CHECK(call("def h(x=f()): return x", 0, 1) == "?");
  CHECK(call("assert f(), 'told'", 0, 1) == "?");
}

TEST_CASE("Where a statement takes its parts in another order, a call is told if it is alone") {
  CHECK(call("x[f()] = g()", 0, 2) == "?");
  CHECK(call("x[f()] += g()", 0, 2) == "f()");
  CHECK(call("x[f()] = 1", 0, 1) == "f()");
  CHECK(call("x = f() if g() else h()", 0, 3) == "?");
  CHECK(call("x = f() if y == 1 else None", 0, 1) == "f()");
  CHECK(call("x: f() = g()", 0, 2) == "?");
}

TEST_CASE("A comprehension makes its calls itself, but those for what it goes through first") {
  constexpr std::string_view kText = "y = cat([x.to(dev) for x in rows(n)], dim=0)";
  CHECK(call(kText, 0, 1, Caller::comprehension) == "x.to(dev)");
  CHECK(call(kText, 0, 3) == "rows(n)");
  CHECK(call(kText, 1, 3) == "[x.to(dev) for x in rows(n)]");
  CHECK(call(kText, 2, 3) == "cat([x.to(dev) for x in rows(n)], dim=0)");
  CHECK(call("y = sum(x.a() for x in z)", 0, 2) == "(x.a() for x in z)");
  CHECK(call("y = [f(g(x)) for x in z]", 1, 2, Caller::comprehension) == "f(g(x))");
  CHECK(call("y = [f(x) for x in z if g(x)]", 0, 2, Caller::comprehension) == "?");
  CHECK(call("y = [f(x) for x in z], [g(x) for x in z]", 0, 1, Caller::comprehension) == "?");
  CHECK(call("y = f(x)", 0, 1, Caller::comprehension) == "?");
}

TEST_CASE("A lambda makes the calls of its body") {
  constexpr std::string_view kText = "attempt(lambda y=f(): g() + h(y), later())";
  CHECK(call(kText, 0, 2, Caller::lambda) == "g()");
  CHECK(call(kText, 1, 2, Caller::lambda) == "h(y)");
  CHECK(call(kText, 0, 3) == "f()");
  CHECK(call(kText, 1, 3) == "later()");
  CHECK(call("f = lambda: g({1: h()})", 1, 2, Caller::lambda) == "g({1: h()})");
  CHECK(call("x = f(lambda: g())", 0, 1) == "f(lambda: g())");
  CHECK(call("x = f(lambda: [g(a) for a in b])", 0, 1, Caller::comprehension) == "?");
}

TEST_CASE("Subscripts are read in the order in which they end") {
  constexpr std::string_view kNested = "y = self.rows[order[0]].to(dev) + [1, 2] + z()[:, None] # a[0]";
  CHECK(read(kNested, 0, 3) == "order[0]");
  CHECK(read(kNested, 1, 3) == "self.rows[order[0]]");
  CHECK(read(kNested, 2, 3) == "z()[:, None]");
  CHECK(read("return [x[0] for x in z[1]]", 0, 1, Caller::comprehension) == "x[0]");
  CHECK(read("return [x[0] for x in z[1]]", 0, 1) == "z[1]");
  CHECK(read("for k in [1, 2]: x[k]", 0, 1) == "x[k]");
  CHECK(read("x[0] += y[1]", 1, 2) == "y[1]");
}

TEST_CASE("A subscript before the sign of equality is stored") {
  CHECK(read("x[1] = y[0]", 0, 1) == "y[0]");
  CHECK(stored("x[1] = y[0]", 0, 1) == "x[1]");
  CHECK(stored("x[1] = y[2] = z", 1, 2) == "y[2]");
  CHECK(read("x[y[0]] = z[1]", 0, 2) == "?");
  CHECK(read("x[0], y = z[1], 0", 0, 1) == "?");
  CHECK(stored("x[0], y = z[1], 0", 0, 1) == "?");
  CHECK(stored("x[0] += 1", 0, 1) == "?");
  CHECK(stored("x: y[0] = z[1]", 0, 1) == "?");
  CHECK(read("x: y[0] = z[1]", 0, 2) == "?");
}

TEST_CASE("Where byte code and text have not as many subscripts, none is told") {
  CHECK(read("x = 'ab'[0]", 1, 1) == "?");
  CHECK(read("del x[y[0]]", 0, 1) == "?");
  CHECK(read("x[0] = f'{y[0]}'", 0, 1) == "?");
  CHECK(read("case [x, *_]: y()", 0, 1) == "?");
  CHECK(read("match x[0]:", 0, 1) == "?");
  CHECK(call("match f(x):", 0, 1) == "?");
  CHECK(call("match = match(lambda x: 1)", 0, 1) == "match(lambda x: 1)");
}

TEST_CASE("A call has the lines and columns of its file") {
  constexpr std::string_view kText = "import a\nx = f(\n  'un (',  # )\n  g(1))\n";
  const auto statement = statement_around(kText, 4);
  REQUIRE(statement);
  CHECK((statement->first == 2 && statement->last == 4));
  const auto inner = extent_of(kText, *statement, Caller::function, SourcePart::call, 0, 2);
  REQUIRE(inner);
  CHECK((inner->line == 4 && inner->column == 2 && inner->end_line == 4 && inner->end_column == 6));
  const auto outer = extent_of(kText, *statement, Caller::function, SourcePart::call, 1, 2);
  REQUIRE(outer);
  CHECK((outer->line == 2 && outer->column == 4 && outer->end_line == 4 && outer->end_column == 7));
  CHECK_FALSE(statement_around(kText, 5));
}

}  // namespace
}  // namespace devsan::hooks
