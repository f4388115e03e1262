#include "report/program/scopes.h"

#include <catch2/catch.hpp>

#include "parsed.h"
#include "report/program/functions.h"

namespace devsan::program {
namespace {

// Which scope owns the name at its `which`th occurrence; "-" for a builtin.
std::string owner(const std::string& source, std::string_view name, int which) {
  const SourceFile file("a.py", source);
  const Node node = find(file, name, which);
  const Scope* scope = file.scopes().binding(name, file.scopes().of(node));
  return scope == nullptr ? "-" : file.scopes().qualified_name(*scope);
}

TEST_CASE("A name belongs to the scope that Python gives it to") {
  struct Case {
    const char* source;
    const char* name;
    int which;
    const char* owner;
  };
  for (const Case& each : {
           Case{"x = 1\ndef f(): return x\n", "x", 1, "<module>"},
           Case{"x = 1\ndef f():\n  x = 2\n  return x\n", "x", 2, "f"},
           Case{"x = 1\ndef f():\n  print(x)\n  x += 2\n", "x", 1, "f"},
           Case{"def f(x):\n  def g(): return x\n", "x", 1, "f"},
           Case{"def f():\n  x = 1\n  def g():\n    nonlocal x\n    x = 2\n", "x", 2, "f"},
           Case{"def f():\n  global x\n  x = 2\n", "x", 1, "<module>"},
           Case{"class A:\n  x = 1\n  y = x\n  def f(self): return x\n", "x", 1, "A"},
           Case{"class A:\n  x = 1\n  y = x\n  def f(self): return x\n", "x", 2, "-"},
           Case{"class A:\n  x = 1\n  y = [x for _ in x]\n", "x", 1, "-"},
           Case{"class A:\n  x = 1\n  y = [x for _ in x]\n", "x", 2, "A"},
           Case{"def f(x=y, *, z: x = 1): pass\n", "x", 1, "-"},
           Case{"a = [x for x in x]\n", "x", 2, "-"},
           Case{"a = [x for x in y]\n", "x", 0, "<listcomp>"},
           Case{"def f():\n  a = [(x := y) for y in z]\n  return x\n", "x", 1, "f"},
           Case{"def f():\n  for x in y: pass\n  with a as (b, x): pass\n  return x\n", "x", 2, "f"},
           Case{"def f():\n  try: pass\n  except E as x: pass\n  import x.y\n  return x\n", "x", 2, "f"},
           Case{"def f():\n  match v:\n    case [A(k=x)]: return x\n", "x", 1, "f"},
           Case{"def f():\n  match v:\n    case x.y: return x\n", "x", 1, "-"},
           Case{"f = lambda x: x\n", "x", 1, "<lambda>"},
           Case{"f = lambda x=x: 1\n", "x", 1, "-"},
           Case{"def f():\n  del x\n  return x\n", "x", 1, "f"},
           Case{"def f(a, /, *args, b, **kw): return kw\n", "kw", 1, "f"},
           Case{"def f[T](x: T): return T\n", "T", 1, "<generic parameters>"},
           Case{"def f():\n  x: int\n  return x\n", "x", 1, "f"},
           Case{"def f():\n  o.x = 1\n  return x\n", "x", 1, "-"},
           Case{"from a import b as x, c\ndef f(): return x\n", "x", 1, "<module>"},
           Case{"f(x=x)\nx = 1\n", "x", 1, "<module>"},
       }) {
    INFO(each.source);
    CHECK(owner(each.source, each.name, each.which) == each.owner);
  }
}

TEST_CASE("Parameters have kinds, defaults and annotations") {
  const SourceFile file("a.py", "def f(a, b: int, /, c=1, *args: T, d, e: str = 'x', **kw): pass\n");
  const Scope* scope = file.scopes().made_by(file.root().children().front());
  REQUIRE(scope != nullptr);
  std::vector<std::string> parts;
  for (const Parameter& each : scope->parameters) {
    parts.push_back(std::string(each.name) + " " + std::to_string(static_cast<int>(each.kind)) + " " +
                    std::string(each.annotation.text()) + " " + std::string(each.default_value.text()));
  }
  CHECK(joined(parts) == "a 0  ; b 0 int ; c 1  1; args 2 T ; d 3  ; e 3 str 'x'; kw 4  ");
  const SourceFile starred("a.py", "def f(a, *, b): pass\n");
  CHECK(starred.scopes().made_by(starred.root().children().front())->parameter("b")->kind ==
        ParameterKind::KeywordOnly);
}

std::string described(const Definition& each) {
  std::string text = each.variable.text() + " = " + std::string(each.value.text());
  for (const int place : each.path) text += place == Definition::kRest ? "[*]" : "[" + std::to_string(place) + "]";
  return text;
}

TEST_CASE("Definitions know their value and place in it") {
  const auto all = [](const char* source) {
    const SourceFile file("a.py", source);
    std::vector<std::string> parts;
    for (const Definition& each : file.definitions().all()) parts.push_back(described(each));
    return joined(parts);
  };
  CHECK(all("a = b = c\n") == "a = c; b = c");
  CHECK(all("a, (b, *c), d = v\n") == "a = v[0]; b = v[1][0]; c = v[1][*]; d = v[2]");
  CHECK(all("[*a, b, c] = v\n") == "a = v[*]; b = v[-2]; c = v[-1]");
  CHECK(all("a.b['k'][0], c[i] = v\n") == "a.b['k'][0] = v[0]; c[] = v[1]");
  CHECK(all("for i, x in e(y): pass\n") == "i = e(y)[0]; x = e(y)[1]");
  CHECK(all("with f() as (a, b): pass\n") == "a = f()[0]; b = f()[1]");
  CHECK(all("x: int = 3\n") == "x = 3");
  CHECK(all("x += 3\n") == "x = 3");
  CHECK(all("setattr(self.m, 'w', v)\nsetattr(self, n, v)\n") == "self.m.w = v");
  CHECK(all("f().x = v\n") == ".x = v");
  CHECK(all("(a) = v\n(a.b) = w\n") == "a = v; a.b = w");
  CHECK(all("f(lambda x=1: x)\n") == "x = 1");
  CHECK(all("import a.b.c, d as e\n") == "a = ; e = ");
}

TEST_CASE("An unpacked display gives each target its own value") {
  const auto own = [](const char* source, std::size_t which) {
    const SourceFile file("a.py", source);
    return std::string(file.definitions().all().at(which).own_value().text());
  };
  CHECK(own("a, b = x, (y)\n", 1) == "(y)");
  CHECK(own("a, (b, c) = x, (y, z)\n", 2) == "z");
  CHECK(own("a, *b, c = x, y, z\n", 2) == "z");
  CHECK(own("a, *b, c = x, y, z\n", 1).empty());
  CHECK(own("a, b = *x, y\n", 0).empty());
  CHECK(own("a, b = v\n", 0).empty());
  CHECK(own("a = b = v\n", 1) == "v");
}

TEST_CASE("Imported names have dotted origins") {
  const SourceFile file("a.py",
                        "import torch, torch.nn as nn\nfrom torch import zeros as z, nn as n2\nfrom .u import f\n"
                        "from .. import g\nimport a.b.c\n"
                        "torch.ones(1); nn.Linear(2); z(3); n2.x(4); f(5); g(6); len(7); a.b.c.d(8); own(9)\n"
                        "def own(a): torch = a; return torch.zeros(10)\n");
  const auto origin = [&file](std::string_view call) { return origin_of(find(file, call).child(Field::Function)); };
  CHECK(origin("torch.ones(1)") == "torch.ones");
  CHECK(origin("nn.Linear(2)") == "torch.nn.Linear");
  CHECK(origin("z(3)") == "torch.zeros");
  CHECK(origin("n2.x(4)") == "torch.nn.x");
  CHECK(origin("f(5)") == ".u.f");
  CHECK(origin("g(6)") == "..g");
  CHECK(origin("len(7)") == "len");
  CHECK(origin("a.b.c.d(8)") == "a.b.c.d");
  CHECK(origin("own(9)").empty());
  CHECK(origin("torch.zeros(10)").empty());
}

TEST_CASE("Uses and definitions of a variable are found across scopes") {
  const SourceFile file("a.py", "x = 1\ndef f():\n  global x\n  x = 2\n  g(x, x=3, y=o.x)\nclass A:\n  x = x\n");
  const Definitions& definitions = file.definitions();
  CHECK(definitions.of_name(file.scopes().module(), "x").size() == 2);
  CHECK(definitions.uses(file.scopes().module(), "x").size() == 1);
  CHECK(definitions.of_attribute("x").empty());
  CHECK(definitions.at(find(file, "x = 2")).size() == 1);
}

}  // namespace
}  // namespace devsan::program
