#include <catch2/catch.hpp>

#include "parsed.h"

namespace devsan::program {
namespace {

TEST_CASE("The grammar of Python 3.10 to 3.14 is understood") {
  for (const char* source : {
           "match x:\n  case Point(x=0) | [1, *_] if y: pass\n  case {'a': b, **rest} as d: pass\n  case _: pass\n",
           "match = 1\nmatch[0] = case = type = match\nprint(match, type(case))\n",
           "try:\n  pass\nexcept* (A, B) as e:\n  pass\n",
           "try:\n  pass\nexcept A, B:\n  pass\n",
           "type X[T: int, *Ts, **P] = list[T]\n",
           "def f[T](a: T, /, b=3, *args: *Ts, c, **kw) -> T: ...\n",
           "class A[T: (int, str)](B, metaclass=M): ...\n",
           "x = f'{a!r:>{w}} {f\"{b}\"} {{}} {d[\"k\"]}'\n",
           "x = f'''{\n  a\n  + b  # why\n}'''\n",
           "x = t'{a} and {b:3}'\n",
           "x = rb'\\x' b'' Rb\"\" u'a' 'b' f'{c}'\n",
           "if (n := f()) > 3 and [y := 1, y**2]: pass\n",
           "@a.b[c](d)\n@(lambda f: f)\nasync def g():\n  async with a as b, c: await d\n  async for x in y: yield x\n",
           "with (open(a) as b, c as (d, e),): pass\n",
           "x = [await y async for y in z if await y]\n",
           "def f():\n  return *a, b\n  x = yield from g()\n",
           "lambda *, a, b=1, **c: (yield)\n",
           "for x in *a, *b: pass\nelse: pass\n",
           "a[1:2, ::3, *b, ...] = x\n",
           "x: int = 3; y: list[int]\n",
           "print(a, file=b)\nexec('x')\nprint >> a\n",
           "a = b if c else d if e else f\nnot a in b is not c\n",
           "a @= b @ c; d //= e; f **= -g ** -h\n",
           "del a, (b, c[0]), d.e\n",
           "global a; nonlocal b\nraise A from b\nassert a, b\n",
           "x = 0x_ff + 0b1 + 0o7 + 1_000.5e-3 + 3j\n",
           "from . import (a, b as c,)\nfrom ...d.e import *\nfrom __future__ import annotations\n",
       }) {
    INFO(source);
    CHECK_FALSE(SourceFile("a.py", source).has_errors());
  }
}

TEST_CASE("Layout does not disturb the tree") {
  struct Case {
    const char* source;
    const char* text;
    Range range;
  };
  for (const Case& each : {
           Case{"def f():\n    x = '''\na\n'''\n    return g(x)\n", "g(x)", {5, 5, 11, 15}},
           Case{"def f():\n  if a and \\\n   b: g(\\\n  x)\n", "g(\\\n  x)", {3, 4, 6, 4}},
           Case{"if a:\n\tx = 1\n\tg(x)\n", "g(x)", {3, 3, 1, 5}},
           Case{"if a:\r\n  x = 1\r\n  g(x)\r\n", "g(x)", {3, 3, 2, 6}},
           Case{"x = 1\rif a:\r  g(x)\r", "g(x)", {3, 3, 2, 6}},
           Case{"x = 'äö€😀'; g(x)\n", "g(x)", {1, 1, 19, 23}},
           Case{"\xef\xbb\xbfg(x)\n", "g(x)", {1, 1, 0, 4}},
           Case{"a = 1; b = g(x); c\n", "g(x)", {1, 1, 11, 15}},
           Case{"def f():\n  pass\n# comment at column 0\n  g(x)\n", "g(x)", {4, 4, 2, 6}},
           Case{"\f\ng(x)", "g(x)", {2, 2, 0, 4}},
           Case{"x = (1 +\n# why\n  g(x))", "g(x)", {3, 3, 2, 6}},
       }) {
    INFO(each.source);
    const SourceFile file("a.py", each.source);
    CHECK_FALSE(file.has_errors());
    const Node node = find(file, each.text);
    CHECK(node.is(Kind::Call));
    CHECK(node.range() == each.range);
    CHECK(node_at(file, each.range) == node);
  }
}

TEST_CASE("A star is bound to all of its expression") {
  for (const char* source : {"x = *a.b(c)[0], d\n", "x = d, *a.b(c)[0]\n", "return *a.b(c)[0], d\n", "f(*a.b(c)[0])\n",
                             "[*a.b(c)[0] + d]\n", "{*a.b(c)[0] or d}\n", "for x in *a.b(c)[0], d: pass\n"}) {
    INFO(source);
    const SourceFile file("a.py", source);
    CHECK_FALSE(file.has_errors());
    const Node node = find(file, "a.b(c)[0]");
    Node splat = node;
    while (splat && !splat.is(Kind::ListSplat)) splat = splat.parent();
    CHECK(node.is(Kind::Subscript));
    CHECK(splat.text().starts_with("*a.b(c)[0]"));
    CHECK(splat.only_child().begin_byte() == node.begin_byte());
    CHECK(splat.only_child().end_byte() == splat.end_byte());
    for (std::uint32_t at = 1; at < file.size(); ++at) {
      const Node each = file.node(at);
      CHECK(each.parent().contains(each));
      CHECK(each.parent().begin_byte() <= each.begin_byte());
      CHECK(each.parent().end_byte() >= each.end_byte());
    }
    CHECK(node.child(Field::Value).is(Kind::Call));
    CHECK(node.child(Field::Value).child(Field::Function).child(Field::Object).text() == "a");
  }
}

TEST_CASE("A call of type is no type alias") {
  const SourceFile file("a.py", "type(a).b = c\ntype (a).b = c\ntype X = int\ntype(a)\n");
  CHECK_FALSE(file.has_errors());
  const std::vector<Node> statements = file.root().children();
  CHECK(statements[0].only_child().child(Field::Left).text() == "type(a).b");
  CHECK(statements[1].only_child().is(Kind::Assignment));
  CHECK(statements[2].is(Kind::TypeAliasStatement));
  CHECK(statements[3].only_child().text() == "type(a)");
}

TEST_CASE("What surrounds an error is understood") {
  for (const char* source :
       {"def f(self):\n  x = = 3\n  return g(x)\n", "class A:\n  def f(self:\n    pass\n\ndef h():\n  return g(x)\n",
        "x = [1, 2\n\ndef f():\n  return g(x)\n", "if a:\n    b\n   c\ng(x)\n", "x = '''never\nclosed g(x)\n",
        "\x80\xff = g(x)\n", "g(x)\n\0\n"}) {
    INFO(source);
    const SourceFile file("a.py", std::string(source, std::char_traits<char>::length(source)));
    CHECK(file.definitions().all().size() < 10);
    CHECK(file.root().end_byte() <= file.text().size());
  }
  const SourceFile file("a.py", "def f(self):\n  x = = 3\n  return g(x)\n");
  CHECK(file.has_errors());
  CHECK(function_of(find(file, "g(x)")).child(Field::Name).text() == "f");
}

TEST_CASE("Empty files and lines that there are not have no nodes") {
  for (const char* source : {"", "\n", "# only a comment", "\xef\xbb\xbf", "\\"}) {
    const SourceFile file("a.py", source);
    CHECK(file.root().children().size() <= 1);
    CHECK_FALSE(node_at(file, {99, 99, 0, 1}));
    CHECK_FALSE(statement_at(file, 99));
    CHECK_FALSE(statement_at(file, 0));
    CHECK(file.line_text(7).empty());
  }
}

}  // namespace
}  // namespace devsan::program
