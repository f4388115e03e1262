#include "report/program/positions.h"

#include <catch2/catch.hpp>

#include "parsed.h"
#include "report/program/functions.h"
#include "report/program/scopes.h"

namespace devsan::program {
namespace {

TEST_CASE("The position of an instruction is the node of its expression") {
  struct Case {
    const char* source;
    Range range;
    const char* text;
    Kind kind;
  };
  for (const Case& each : {
           Case{"x = a.b(c)[0] + d\n", {1, 1, 4, 17}, "a.b(c)[0] + d", Kind::BinaryOperator},
           Case{"x = a.b(c)[0] + d\n", {1, 1, 4, 13}, "a.b(c)[0]", Kind::Subscript},
           Case{"x = a.b(c)[0] + d\n", {1, 1, 4, 10}, "a.b(c)", Kind::Call},
           Case{"x = a.b(c)[0] + d\n", {1, 1, 4, 7}, "a.b", Kind::Attribute},
           Case{"x = a.b(c)[0] + d\n", {1, 1, 4, 5}, "a", Kind::Identifier},
           Case{"f((a + b))\n", {1, 1, 3, 8}, "a + b", Kind::BinaryOperator},
           Case{"f(a)\n", {1, 1, 0, 4}, "f(a)", Kind::Call},
           // A call of a method over several lines begins at the method's name.
           Case{"x = (a\n  .to(b)\n  .sum())\n", {3, 3, 3, 8}, "a\n  .to(b)\n  .sum()", Kind::Call},
           Case{"x = (a\n  .to(b)\n  .sum())\n", {2, 2, 3, 8}, "a\n  .to(b)", Kind::Call},
           Case{"x = 'abc'\n", {1, 1, 4, 9}, "'abc'", Kind::String},
           Case{"x = a < b\n", {1, 1, 4, 9}, "a < b", Kind::ComparisonOperator},
           Case{"x += a @ b\n", {1, 1, 0, 10}, "x += a @ b", Kind::AugmentedAssignment},
           Case{"for x in f(y):\n  pass\n", {1, 1, 9, 13}, "f(y)", Kind::Call},
           Case{"@d\ndef f(a=g()): pass\n", {2, 2, 8, 11}, "g()", Kind::Call},
           Case{"x = 1\ny = f(x)\n", {2, -1, -1, -1}, "y = f(x)", Kind::ExpressionStatement},
           Case{"if a:\n\n  # why\n  b()\n", {4, -1, -1, -1}, "b()", Kind::ExpressionStatement},
           Case{"x = f(\n  a,\n  b)\n", {2, -1, -1, -1}, "x = f(\n  a,\n  b)", Kind::ExpressionStatement},
       }) {
    INFO(each.source);
    const SourceFile file("a.py", each.source);
    const Node node = node_at(file, each.range);
    CHECK(node.text() == each.text);
    CHECK(to_string(node.kind()) == to_string(each.kind));
  }
}

constexpr const char* kProgram = R"(import a

@deco
@other(lambda q: q)
def outer(x, y=lambda: 3):
    z = [i for i in x]

    class Inner(Base):
        w = {k: v for k, v in x}

        @property
        async def method(self):
            return (lambda s: s + x)(1)
    return Inner

class Model(nn.Module):
    def forward(self): return 1
    def forward(self, x): return self.f(x)
def generic[T](x: T) -> T:
    return x
)";

TEST_CASE("Code objects are found by their first line and name") {
  const SourceFile file("a.py", kProgram);
  struct Case {
    int line;
    const char* name;
    const char* begins;
  };
  for (const Case& each : {
           Case{3, "outer", "def outer"},
           Case{1, "<module>", "import a"},
           Case{4, "<lambda>", "lambda q"},
           Case{5, "<lambda>", "lambda: 3"},
           Case{6, "outer.<locals>.<listcomp>", "[i for"},
           Case{6, "<listcomp>", "[i for"},
           Case{9, "outer.<locals>.Inner.<dictcomp>", "{k: v"},
           Case{11, "outer.<locals>.Inner.method", "async def method"},
           Case{11, "method", "async def method"},
           Case{13, "outer.<locals>.Inner.method.<locals>.<lambda>", "lambda s"},
           Case{17, "Model.forward", "def forward(self): return 1"},
           Case{18, "Model.forward", "def forward(self, x)"},
           Case{19, "generic", "def generic"},
       }) {
    INFO(each.name);
    const Node found = function_at(file, each.line, each.name);
    CHECK(found.text().starts_with(each.begins));
  }
  CHECK_FALSE(function_at(file, 3, "inner"));
  CHECK_FALSE(function_at(file, 4, "outer"));
  CHECK(class_at(file, 8, "outer.<locals>.Inner").text().starts_with("class Inner"));
  CHECK(class_at(file, 16, "Model").text().starts_with("class Model"));
}

TEST_CASE("A node knows its statement, function and class") {
  const SourceFile file("a.py", kProgram);
  const Node sum = find(file, "s + x");
  CHECK(function_of(sum).is(Kind::Lambda));
  CHECK(class_of(sum).child(Field::Name).text() == "Inner");
  CHECK(statement_of(sum).text().starts_with("return (lambda"));
  const Node call = find(file, "self.f(x)");
  CHECK(class_of(call).child(Field::Name).text() == "Model");
  CHECK(class_of_method(function_of(call)) == class_of(call));
  CHECK_FALSE(class_of_method(function_at(file, 3, "outer")));
  CHECK_FALSE(class_of(find(file, "import a")));
  CHECK(function_of(find(file, "nn.Module")) == file.root());
  CHECK(function_of(find(file, "lambda: 3")) == file.root());
  CHECK(function_of(find(file, "i")).is(Kind::ListComprehension));
  CHECK(statement_of(find(file, "deco")).is(Kind::DecoratedDefinition));
  const SourceFile branch("a.py", "if f(x):\n  y = 1\n");
  CHECK(statement_of(find(branch, "f(x)")).is(Kind::IfStatement));
  CHECK(statement_of(find(branch, "1")).text() == "y = 1");
}

TEST_CASE("Functions tell what they return and call") {
  const auto returns = [](const std::string& body) {
    const SourceFile file("a.py", "def f(x):\n" + body);
    const Returns found = returns_of(file.root().children().front());
    std::vector<std::string> parts;
    for (const Node each : found.values) parts.emplace_back(each.text());
    for (const Node each : found.yielded) parts.emplace_back("yield " + std::string(each.text()));
    if (found.may_return_none) parts.emplace_back("None");
    return joined(parts);
  };
  CHECK(returns("  return x, 1\n") == "x, 1");
  CHECK(returns("  if x: return x\n") == "x; None");
  CHECK(returns("  if x: return x\n  else: raise E\n") == "x");
  CHECK(returns("  def g(): return 1\n  return [y for y in x]\n") == "[y for y in x]");
  CHECK(returns("  while True:\n    if x: return x\n") == "x");
  CHECK(returns("  try: return x\n  except E: pass\n") == "x; None");
  CHECK(returns("  with x: return x\n") == "x");
  CHECK(returns("  if x: return\n  return 1\n") == "1; None");
  CHECK(returns("  yield x\n") == "yield x; None");

  const SourceFile file("a.py",
                        "def f(x):\n  g(h(x))\n  x.a.append(1)\n  def k(): q()\n  return [m(y) for y in x]\ng(1)\n");
  std::vector<std::string> calls;
  for (const Node each : calls_in(file.root().children().front())) calls.emplace_back(each.text());
  CHECK(joined(calls) == "g(h(x)); h(x); x.a.append(1); m(y)");
  CHECK(calls_to(file, "g").size() == 2);
  CHECK(calls_of_method(file, "append").size() == 1);
  CHECK(method_calls_on(file.root().children().front(), "x").size() == 1);
}

}  // namespace
}  // namespace devsan::program
