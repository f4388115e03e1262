#include "hooks/inprocess/source/python_scopes.h"

#include <catch2/catch.hpp>
#include <string>

namespace devsan::hooks {
namespace {

std::string name_at(std::string_view text, int line, std::string_view name) {
  char buffer[256];
  return std::string(qualified_name_in(text, line, name, buffer));
}

constexpr std::string_view kNet = R"py(import torch
class Net(torch.nn.Module):
    """One who has

def forward(self): in his words."""

    def forward(self, x):
# indented as it likes
        def inner(y):
            return [z * 2 for z in y]
        class Box:
            def get(self): return 1
        scale = lambda v: v * 3
        return inner(x, key=(
    1)) + sum(a for a in x)

    @torch.no_grad()
    @cached(
        size=3)
    async def load(self):
        if self.ready:
            def late(): pass
def step(): pass
)py";

TEST_CASE("A function is qualified by the classes and functions that its definition stands in") {
  CHECK(name_at(kNet, 2, "Net") == "Net");
  CHECK(name_at(kNet, 7, "forward") == "Net.forward");
  CHECK(name_at(kNet, 9, "inner") == "Net.forward.<locals>.inner");
  CHECK(name_at(kNet, 12, "get") == "Net.forward.<locals>.Box.get");
  CHECK(name_at(kNet, 22, "late") == "Net.load.<locals>.late");
  CHECK(name_at(kNet, 23, "step") == "step");
  CHECK(name_at(kNet, 1, "<module>") == "<module>");
}

TEST_CASE("A decorated function begins at its first decorator") {
  CHECK(name_at(kNet, 17, "load") == "Net.load");
}

TEST_CASE("Lambdas and comprehensions stand in the function around their statement") {
  CHECK(name_at(kNet, 10, "<listcomp>") == "Net.forward.<locals>.inner.<locals>.<listcomp>");
  CHECK(name_at(kNet, 13, "<lambda>") == "Net.forward.<locals>.<lambda>");
  CHECK(name_at(kNet, 15, "<genexpr>") == "Net.forward.<locals>.<genexpr>");
  CHECK(name_at("a = [f(x) for x in y] + [x for x in z]", 1, "<listcomp>") == "<listcomp>");
  CHECK(name_at("class A:\n  b = {k: 1 for k in c}\n", 2, "<dictcomp>") == "A.<dictcomp>");
}

TEST_CASE("A function that the text has not at that line has no qualified name") {
  CHECK(name_at(kNet, 5, "forward").empty());
  CHECK(name_at(kNet, 7, "backward").empty());
  CHECK(name_at(kNet, 8, "inner").empty());
  CHECK(name_at(kNet, 100, "forward").empty());
  CHECK(name_at("", 1, "forward").empty());
  CHECK(name_at("x = 'no end\ndef f(): pass\n", 2, "f").empty());
}

TEST_CASE("Of nested lambdas and comprehensions the text does not tell which one is meant") {
  CHECK(name_at("x = [[a for a in b] for b in c]", 1, "<listcomp>").empty());
  CHECK(name_at("x = lambda: lambda: 0", 1, "<lambda>").empty());
  CHECK(name_at("x = lambda: [a for a in b]", 1, "<listcomp>").empty());
  CHECK(name_at("x = f\"{[a for a in b]}\" + str(c for c in d)", 1, "<genexpr>").empty());
  CHECK(name_at("def f(): return lambda: 0", 1, "<lambda>").empty());
  CHECK(name_at("def f(x=lambda: 0): return x", 1, "<lambda>") == "<lambda>");
}

TEST_CASE("What a function declares to be global is not qualified by it") {
  constexpr std::string_view kText = "def f():\n  global g\n  def g():\n    def h(): pass\n  def own(): pass\n";
  CHECK(name_at(kText, 3, "g").empty());
  CHECK(name_at(kText, 4, "h").empty());
  CHECK(name_at(kText, 5, "own") == "f.<locals>.own");
}

TEST_CASE("A name that is longer than its buffer is none") {
  char buffer[8];
  CHECK(qualified_name_in(kNet, 7, "forward", buffer).empty());
}

}  // namespace
}  // namespace devsan::hooks
