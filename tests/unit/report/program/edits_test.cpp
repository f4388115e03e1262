#include "report/program/edits.h"

#include <catch2/catch.hpp>

#include "parsed.h"

namespace devsan::program {
namespace {

std::string applied(const SourceFile& file, const std::optional<Edit>& edit) {
  if (!edit) return "no edit";
  const auto text = apply(file.text(), {*edit});
  REQUIRE(text);
  CHECK(parses(*text));
  return *text;
}

struct Case {
  const char* source;
  const char* node;
  const char* code;
  const char* expected;
};

TEST_CASE("An argument is put into a call as its author would") {
  for (const Case& each : {
           Case{"f()\n", "f()", "d=1", "f(d=1)\n"},
           Case{"f( )\n", "f( )", "d=1", "f(d=1 )\n"},
           Case{"f(a)\n", "f(a)", "d=1", "f(a, d=1)\n"},
           Case{"f(a,)\n", "f(a,)", "d=1", "f(a, d=1)\n"},
           Case{"f(a, b=2, **k)\n", "f(a, b=2, **k)", "d=1", "f(a, b=2, **k, d=1)\n"},
           Case{"f(a, b=2)\n", "f(a, b=2)", "c", "f(a, c, b=2)\n"},
           Case{"f(*a)\n", "f(*a)", "c", "f(*a, c)\n"},
           Case{"f(x for x in y)\n", "f(x for x in y)", "d=1", "f((x for x in y), d=1)\n"},
           Case{"f(\n    a,\n    b,\n)\n", "f(\n    a,\n    b,\n)", "d=1", "f(\n    a,\n    b,\n    d=1,\n)\n"},
           Case{"f(\n    a,\n    b\n)\n", "f(\n    a,\n    b\n)", "d=1", "f(\n    a,\n    b,\n    d=1\n)\n"},
           Case{"f(\n  a,  # why\n)\n", "f(\n  a,  # why\n)", "d=1", "f(\n  a,  # why\n  d=1,\n)\n"},
           Case{"f(\n  a  # why\n)\n", "f(\n  a  # why\n)", "d=1", "f(\n  a,  # why\n  d=1\n)\n"},
           Case{"f(a,\n  b)\n", "f(a,\n  b)", "d=1", "f(a,\n  b, d=1)\n"},
           Case{"f(\r\n  a,\r\n)\r\n", "f(\r\n  a,\r\n)", "d=1", "f(\r\n  a,\r\n  d=1,\r\n)\r\n"},
           Case{"f(a)\n", "f(a)", "d=", "no edit"},
           Case{"f(a)\n", "a", "d=1", "no edit"},
           Case{"f(a)\n", "f(a)", "b == c", "f(a, b == c)\n"},
       }) {
    INFO(each.source);
    const SourceFile file("a.py", each.source);
    Node node = find(file, each.node);
    CHECK(applied(file, insert_argument(node, each.code)) == each.expected);
  }
}

TEST_CASE("A keyword that is given gets another value") {
  const SourceFile file("a.py", "f(a, device=x if y else z, b=1)\n");
  const Node call = file.root().children()[0].children()[0];
  CHECK(applied(file, set_keyword(call, "device", "d")) == "f(a, device=d, b=1)\n");
  CHECK(applied(file, set_keyword(call, "dtype", "t")) == "f(a, device=x if y else z, b=1, dtype=t)\n");
}

TEST_CASE("A replaced expression keeps its operators apart") {
  for (const Case& each : {
           Case{"y = x * 2\n", "x", "a + b", "y = (a + b) * 2\n"},
           Case{"y = x + 2\n", "x", "a + b", "y = a + b + 2\n"},
           Case{"y = 2 - x\n", "x", "a - b", "y = 2 - (a - b)\n"},
           Case{"y = x ** 2\n", "x", "-a", "y = (-a) ** 2\n"},
           Case{"y = 2 ** x\n", "x", "-a", "y = 2 ** -a\n"},
           Case{"y = x.z\n", "x", "await a", "y = (await a).z\n"},
           Case{"y = f(x)\n", "x", "a if b else c", "y = f(a if b else c)\n"},
           Case{"y = f(x)\n", "x", "a, b", "y = f((a, b))\n"},
           Case{"y = x\n", "x", "a, b", "y = a, b\n"},
           Case{"y = x\n", "x", "(n := a)", "y = (n := a)\n"},
           Case{"y = x\n", "x", "n := a", "y = (n := a)\n"},
           Case{"y = not x\n", "x", "a or b", "y = not (a or b)\n"},
           Case{"y = x if c else d\n", "x", "lambda: 1", "y = (lambda: 1) if c else d\n"},
           Case{"y = f'{x}'\n", "x", "lambda: 1", "y = f'{(lambda: 1)}'\n"},
           Case{"y = x\n", "x", "a\n+ b", "y = (a\n+ b)\n"},
           Case{"y = x\n", "x", "a) + (b", "no edit"},
           Case{"y = x\n", "x", "import a", "no edit"},
           Case{"y = x\n", "x", "a b", "no edit"},
           Case{"y = sum(x for x in z)\n", "(x for x in z)", "w", "y = sum(w)\n"},
       }) {
    INFO(each.source);
    const SourceFile file("a.py", each.source);
    CHECK(applied(file, replace_expression(find(file, each.node), each.code)) == each.expected);
  }
}

TEST_CASE("A method is called on a whole expression") {
  for (const Case& each : {
           Case{"y = a + b\n", "a + b", ".to(d)", "y = (a + b).to(d)\n"},
           Case{"y = f(a)[0]\n", "f(a)[0]", ".to(d)", "y = f(a)[0].to(d)\n"},
           Case{"f(*a)\n", "*a", ".to(d)", "f(*a.to(d))\n"},
           Case{"f(**a)\n", "**a", ".to(d)", "f(**a.to(d))\n"},
           Case{"y = 1\n", "1", ".real", "y = (1).real\n"},
           Case{"y = await a\n", "await a", ".to(d)", "y = (await a).to(d)\n"},
           Case{"y = a, b\n", "a, b", ".c", "y = (a, b).c\n"},
           Case{"f(x for x in y)\n", "(x for x in y)", ".to(d)", "f((x for x in y).to(d))\n"},
           Case{"y = a\n", "a", ".to(", "no edit"},
       }) {
    INFO(each.source);
    const SourceFile file("a.py", each.source);
    CHECK(applied(file, append_to_expression(find(file, each.node), each.code)) == each.expected);
  }
  const SourceFile file("a.py", "y = a, b\nz = yield\nw = c + d\nf(g for g in h)\n");
  CHECK(applied(file, wrap_in_call(find(file, "a, b"), "t.f", "d=1")).starts_with("y = t.f((a, b), d=1)\n"));
  CHECK(applied(file, wrap_in_call(find(file, "c + d"), "t.f")).find("w = t.f(c + d)\n") != std::string::npos);
  CHECK(applied(file, wrap_in_call(find(file, "(g for g in h)"), "t.f")).ends_with("f(t.f((g for g in h)))\n"));
}

TEST_CASE("A statement follows another with its indentation") {
  for (const Case& each : {
           Case{"def f():\n    x = 1\n    y = 2\n", "x = 1", "z = 3", "def f():\n    x = 1\n    z = 3\n    y = 2\n"},
           Case{"def f():\n\tx = 1  # why\n", "x = 1", "z = 3", "def f():\n\tx = 1  # why\n\tz = 3\n"},
           Case{"x = 1; y = 2\n", "x = 1", "z = 3", "x = 1; z = 3; y = 2\n"},
           Case{"x = 1; y = 2\n", "y = 2", "z = 3", "x = 1; y = 2; z = 3\n"},
           Case{"if a: x = 1\n", "x = 1", "z = 3", "if a: x = 1; z = 3\n"},
           Case{"if a: x = 1\n", "x = 1", "if b:\n    z = 3\n", "no edit"},
           Case{"if a:\n  if a: x = 1\nb\n", "if a: x = 1", "if b:\n    z = 3",
                "if a:\n  if a: x = 1\n  if b:\n      z = 3\nb\n"},
           Case{"x = 1", "x = 1", "z = 3", "x = 1\nz = 3"},
           Case{"x = 1\r\ny = 2\r\n", "x = 1", "z = 3", "x = 1\r\nz = 3\r\ny = 2\r\n"},
           Case{"x = f(\n  a)\ny\n", "x = f(\n  a)", "z = 3\n", "x = f(\n  a)\nz = 3\ny\n"},
           Case{"x = '''\na\n'''\n", "x = '''\na\n'''", "z = 3", "x = '''\na\n'''\nz = 3\n"},
           Case{"x = 1\n", "x", "z = 3", "no edit"},
           Case{"x = 1\n", "x = 1", "z = = 3", "no edit"},
       }) {
    INFO(each.source);
    const SourceFile file("a.py", each.source);
    Node node = find(file, each.node);
    while (node.parent() && node.parent().text() == node.text() && !is_statement(node)) node = node.parent();
    CHECK(applied(file, insert_statement_after(node, each.code)) == each.expected);
  }
}

TEST_CASE("A statement precedes another, above its decorators") {
  const SourceFile file("a.py", "class A:\n  @d\n  def f(self): return 1\n");
  const Node function = function_at(file, 2, "A.f");
  CHECK(applied(file, insert_statement_before(function, "x = 1\ny = 2\n")) ==
        "class A:\n  x = 1\n  y = 2\n  @d\n  def f(self): return 1\n");
  const Node body = function.child(Field::Body).children().front();
  CHECK(applied(file, insert_statement_before(body, "x = 1")) == "class A:\n  @d\n  def f(self): x = 1; return 1\n");
}

TEST_CASE("Edits that overlap are refused") {
  CHECK(apply("abc", {{0, 1, "x"}, {2, 3, "y"}}) == "xby");
  CHECK(apply("abc", {{2, 3, "y"}, {0, 1, "x"}}) == "xby");
  CHECK(apply("abc", {{1, 1, "x"}, {1, 1, "y"}}) == "axybc");
  CHECK_FALSE(apply("abc", {{0, 2, "x"}, {1, 3, "y"}}));
  CHECK_FALSE(apply("abc", {{2, 9, "x"}}));
}

TEST_CASE("A diff has the changed lines with three of context") {
  CHECK(as_unified_diff("a.py", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\ny\n6\n7\n8\n9\n") ==
        "--- a.py\n+++ a.py\n@@ -2,7 +2,8 @@\n 2\n 3\n 4\n-5\n+x\n+y\n 6\n 7\n 8\n");
  CHECK(as_unified_diff("a.py", "1\n", "1\n").empty());
  CHECK(as_unified_diff("a.py", "", "1\n") == "--- a.py\n+++ a.py\n@@ -0,0 +1 @@\n+1\n");
  CHECK(as_unified_diff("a.py", "1", "2") ==
        "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-1\n\\ No newline at end of file\n+2\n\\ No newline at end of file\n");
  std::string before, after;
  for (int line = 0; line < 30; ++line) {
    before += std::to_string(line) + "\n";
    after += line == 3 || line == 25 ? "x\n" : std::to_string(line) + "\n";
  }
  CHECK(as_unified_diff("a.py", before, after) ==
        "--- a.py\n+++ a.py\n@@ -1,7 +1,7 @@\n 0\n 1\n 2\n-3\n+x\n 4\n 5\n 6\n"
        "@@ -23,7 +23,7 @@\n 22\n 23\n 24\n-25\n+x\n 26\n 27\n 28\n");
}

}  // namespace
}  // namespace devsan::program
