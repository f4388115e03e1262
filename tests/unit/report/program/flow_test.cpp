#include "report/program/flow.h"

#include <catch2/catch.hpp>

#include "parsed.h"

namespace devsan::program {
namespace {

struct Case {
  std::string source;
  std::string expected;
  std::string use = "use";
};

// Each program reads the variable in `use(…)`.
std::string answer(const std::string& source) {
  const SourceFile file("a.py", source);
  REQUIRE_FALSE(file.has_errors());
  Node call;
  for (std::uint32_t at = 0; at < file.size() && !call; ++at) {
    if (file.node(at).is(Kind::Call) && file.node(at).child(Field::Function).text() == "use") call = file.node(at);
  }
  return reaching(file, call.child(Field::Arguments).children().front());
}

void check(const std::vector<Case>& cases) {
  for (const Case& each : cases) {
    INFO(each.source);
    CHECK(answer(each.source) == each.expected);
  }
}

TEST_CASE("The last assignment before a use reaches it") {
  check({
      {"x = 1\nx = 2\nuse(x)\n", "2 x"},
      {"x = 1\nuse(x)\nx = 2\n", "1 x"},
      {"x = 1; x = 2; use(x)\n", "1 x"},
      {"a = b = x = 1\nuse(b)\n", "1 b"},
      {"x = 1\nx = use(x)\n", "1 x"},
      {"x = 1\nx += 2\nuse(x)\n", "2 x"},
      {"x = 1\nx: int\nuse(x)\n", "1 x"},
      {"x = 1\ndel x\nuse(x)\n", ""},
      {"use(x)\n", "…"},
      {"(a, (b, *c)), d = v\nuse(c)\n", "1 c"},
      {"import a.b as x\nuse(x)\n", "1 x"},
      {"def x(): pass\nuse(x)\n", "1 x"},
      {"with f() as x, g(x) as y:\n  use(x)\n", "1 x"},
      {"with f() if a else g() as x:\n  use(x)\n", "1 x"},
      {"if (x := f()) and use(x): pass\n", "1 x"},
      {"x = 1\nif a and (x := f()): use(x)\n", "2 x; 1 x"},
  });
}

TEST_CASE("Branches bring all of their definitions") {
  check({
      {"if a:\n  x = 1\nelif b:\n  x = 2\nelse:\n  x = 3\nuse(x)\n", "6 x; 4 x; 2 x"},
      {"x = 0\nif a:\n  x = 1\nuse(x)\n", "3 x; 1 x"},
      {"x = 0\nif a:\n  x = 1\n  raise E\nuse(x)\n", "1 x"},
      {"def f(x):\n  if a:\n    x = 1\n    return x\n  use(x)\n", "1 x"},
      {"def f(a, *, x=3):\n  if a: x = 1\n  use(x)\n", "2 x; 1 x"},
      {"match v:\n  case [x, y]: pass\n  case {'k': x}: pass\n  case P(z=x) if x: pass\n  case x: pass\nuse(x)\n",
       "5 x; 3 x; 2 x; 4 x"},
      {"x = 0\nmatch v:\n  case 1: x = 1\n  case A.b: x = 2\nuse(x)\n", "4 x; 3 x; 1 x"},
      {"x = 0\nmatch v:\n  case 1: x = 1\n  case _: x = 2\nuse(x)\n", "4 x; 3 x"},
  });
}

TEST_CASE("Loops bring back what their body defines") {
  check({
      {"x = 0\nfor i in r:\n  use(x)\n  x = 1\n", "4 x; 1 x"},
      {"for x in r:\n  x = 1\nuse(x)\n", "2 x; …"},
      {"for x in r:\n  use(x)\n", "1 x"},
      {"for x in r:\n  pass\nuse(x)\n", "1 x; …"},
      {"x = 0\nwhile c:\n  x = 1\n  if a: break\n  x = 2\nelse:\n  x = 3\nuse(x)\n", "7 x; 3 x"},
      {"x = 0\nwhile True:\n  x = 1\n  if a: break\n  x = 2\nuse(x)\n", "3 x"},
      {"x = 0\nfor i in r:\n  x = 1\n  if a: continue\n  x = 2\nuse(x)\n", "5 x; 1 x; 3 x"},
      {"while use(x):\n  x = 1\n", "2 x; …"},
      {"xs = [use(x) for x in r]\n", "1 x"},
      {"y = 1\nxs = [use(y) for x in r]\n", "1 y"},
      {"y = 1\nxs = [x for x in use(y)]\ny = 2\n", "1 y"},
  });
}

TEST_CASE("Exceptions leave a try after any part of it") {
  check({
      {"x = 0\ntry:\n  x = 1\n  f()\n  x = 2\nexcept E as e:\n  use(x)\n", "5 x; 3 x; 1 x"},
      {"try:\n  x = 1\nexcept E:\n  x = 2\nelse:\n  x = 3\nuse(x)\n", "4 x; 6 x"},
      {"x = 0\ntry:\n  x = 1\nfinally:\n  f()\nuse(x)\n", "3 x"},
      {"x = 0\ntry:\n  x = 1\nfinally:\n  use(x)\n", "3 x; 1 x"},
      {"x = 0\ntry:\n  x = 1\nexcept* E:\n  x = 2\nfinally:\n  x = 3\nuse(x)\n", "7 x"},
      {"for i in r:\n  x = 0\n  try:\n    x = 1\n    break\n  finally:\n    x = 2\nuse(x)\n", "7 x; …"},
      {"try:\n  pass\nexcept E as x:\n  use(x)\n", "3 x"},
      {"with suppress(E):\n  x = 1\nuse(x)\n", "2 x; …"},
      {"x = 0\nwith torch.no_grad():\n  x = 1\nuse(x)\n", "3 x"},
  });
}

TEST_CASE("Attributes and subscripts are variables by their path") {
  check({
      {"def f(self):\n  self.a.b = 1\n  use(self.a.b)\n", "2 self.a.b"},
      {"def f(self):\n  self.a.b = 1\n  self.a = g()\n  use(self.a.b)\n", "3 self.a"},
      {"def f(self):\n  use(self.a)\n", "1 self"},
      {"def f(self, o):\n  self.a = 1\n  o.a = 2\n  use(self.a)\n", "2 self.a"},
      {"def f(self):\n  setattr(self, 'a', 1)\n  use(self.a)\n", "2 self.a"},
      {"d = {}\nd['a'] = 1\nd['b'] = 2\nd[k] = 3\nuse(d['a'])\n", "4? d[]; 2 d['a']"},
      {"d = {}\nd['a'] = 1\nuse(d[k])\n", "2? d['a']; 1 d"},
      {"d = {}\nd[\"a\"] = 1\nuse(d['a'])\n", "2 d['a']"},
      {"d = []\nd[-1] = 1\nd[0] = 2\nuse(d[-1])\n", "2 d[-1]"},
      {"x = f()\nx.y = 1\nuse(x)\n", "1 x"},
      {"self = 1\ndef f():\n  self.x = 1\n  use(self.x)\n", "3 self.x"},
  });
}

TEST_CASE("A name of another scope may have any of its values") {
  check({
      {"x = 1\nx = 2\ndef f():\n  use(x)\nx = 3\n", "2 x; 1 x; 5 x"},
      {"def f():\n  x = 1\n  def g():\n    nonlocal x\n    x = 2\n  g()\n  use(x)\n", "2 x; 5 x"},
      {"def f():\n  global x\n  x = 1\n  use(x)\n", "3 x"},
      {"x = 1\nclass A:\n  y = use(x)\n", "1 x"},
      {"x = 1\nclass A:\n  x = 2\n  def f(self): use(x)\n", "1 x"},
      {"x = 1\nclass A:\n  x = 2\n  y = use(x)\n", "3 x"},
      {"x = 1\nf = lambda y: use(x)\nx = 2\n", "1 x; 3 x"},
      {"f = lambda y: use(y)\n", "1 y"},
      {"x = 1\nf = lambda y=use(x): y\nx = 2\n", "1 x"},
  });
}

}  // namespace
}  // namespace devsan::program
