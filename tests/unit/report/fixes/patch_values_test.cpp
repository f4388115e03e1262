#include <catch2/catch.hpp>

#include "patched.h"

namespace devsan::report::fixes {
namespace {

std::string added(const Failing& failing) {
  return patched(failing).added;
}

TEST_CASE("The operand is moved where it is used") {
  CHECK(added({"def f(x, scale):\n    return x * scale  #!?\n"}) == "return x * scale.to(x.device)");
  CHECK(added({"def f(x, net):\n    return x * (net.a + net.b)  #!?\n", "net.a + net.b"}) ==
        "return x * (net.a + net.b).to(x.device)");
}

TEST_CASE("An operand that is read again is moved before it is used") {
  CHECK(added({"def f(x, scale):\n    return x * scale + scale  #!?\n"}) == "scale = scale.to(x.device)");
  CHECK(added({"def f(x, scale):\n    while x * scale > 0:  #!?\n        x = x - scale\n"}) ==
        "while x * scale.to(x.device) > 0:");
}

TEST_CASE("An operand that the operator writes to is moved nowhere") {
  Failing failing{"def f(x, scale):\n    scale.mul_(x)  #!?\n"};
  failing.op = "aten::mul_.Tensor";
  failing.odd_arg = "self";
  CHECK(added(failing).empty());
  failing.op = "aten::add.out";
  failing.odd_arg = "out";
  failing.source = "import torch\ndef f(x, scale):\n    torch.add(x, 1, out=scale)  #!?\n";
  CHECK(added(failing).empty());
}

TEST_CASE("What is bound, returned, kept or handed on is moved where it becomes the operand") {
  CHECK(added({"x = given\nscale = rows.sum()  #!d\ny = x * scale  #?\n"}) == "scale = rows.sum().to(x.device)");
  CHECK(added({"def g(a):\n    return a + b  #!d\nscale = g(a)\ny = x * scale  #?\n"}) ==
        "return (a + b).to('cuda:0')");
  CHECK(added({"x = given\nkept = []\nkept.append(rows.sum())  #!d\nscale = kept[0]\ny = x * scale  #?\n"}) ==
        "kept.append(rows.sum().to(x.device))");
  CHECK(added({"def f(x, scale):\n    return x * scale  #?\nx = given\nf(x, scale)  #!<\n"}) ==
        "f(x, scale.to(x.device))");
}

TEST_CASE("What collects values has each of them moved") {
  CHECK(
      added(
          {"x = given\nkept = {name: row.sum() for name, row in rows}  #!d\nscale = kept['a']\ny = x * scale  #?\n"}) ==
      "kept = {name: row.sum().to(x.device) for name, row in rows}");
}

TEST_CASE("A name that is unpacked or looped over is moved behind") {
  CHECK(added({"def f(x, pairs):\n    scale, shift = pairs[0]  #!d\n    return x * scale  #?\n"}) ==
        "scale = scale.to(x.device)");
  CHECK(added({"def f(x, rows):\n    for scale in rows:  #!d\n        x = x * scale  #?\n"}) ==
        "scale = scale.to(x.device)");
}

TEST_CASE("What is no tensor is not moved") {
  CHECK(added({"scale = [a, b]  #!d\ny = x * scale  #?\n"}).empty());
  CHECK(added({"count = 3  #!\ny = x * scale  #?\n"}).empty());
  CHECK(added({"def f(x, batch):\n    return x * batch['scale']  #?\n"
               "f(x, batch)  #!<\n",
               "batch['scale']"})
            .empty());
}

TEST_CASE("What is asked for its parts is not moved as a whole") {
  CHECK(
      added({"def f(x, state):\n    mine = state['meter']  #!\n    scale = mine['scale']\n    return x * scale  #?\n"})
          .empty());
  CHECK(added({"class Meter:\n    def load(self, state):\n        self.all = state['all']  #!\n"
               "    def run(self, x):\n        return x * self.all[0]  #?\n",
               "self.all[0]"}) == "self.all = [one.to('cuda:0') for one in state['all']]");
}

TEST_CASE("For the sake of an operand on the host, what others make or move elsewhere stays there") {
  const std::string fails = "def f(x, scale):\n    return x * scale  #?\n";
  CHECK(added({"import torch\n" + fails + "x = torch.ones(3, device='cuda:0')  #!C\nf(x, torch.ones(3))  #<c\n"})
            .empty());
  CHECK(added({"import torch\n" + fails + "x = made.cuda()  #!\nf(x, torch.ones(3))  #<c\n"}).empty());
  CHECK(added({"import torch\n" + fails + "x = rows.sum()  #!C\nf(x, torch.ones(3))  #<c\n"}) ==
        "x = rows.sum().cpu()");
}

TEST_CASE("What is there already is not moved again") {
  CHECK(added({"device = 'cuda:0'\nx = given\nscale = rows.to(device)  #!d\ny = x * scale  #?\n"}).empty());
}

TEST_CASE("Of a value that the function has a moved copy of, that one is taken") {
  CHECK(added({"def f(scale):\n    return x * scale  #?\n"
               "def run(rows, device):\n    placed = rows.to(device)\n    f(rows)  #!<\nrun(rows, 'cuda:0')  #<\n"}) ==
        "f(placed)");
  CHECK(added({"def f(scale):\n    return x * scale  #?\n"
               "def run(rows):\n    placed = rows.to('cpu')\n    f(rows)  #!<\nrun(rows)  #<\n"}) ==
        "f(rows.to('cuda:0'))");
}

TEST_CASE("What replaces a buffer goes to where the buffer is") {
  CHECK(added({"class Net(Module):\n    def __init__(self, n):\n        self.register_buffer('scale', n)\n"
               "    def load(self, state):\n        self.scale = state['scale']  #!d\n"
               "    def forward(self, x):\n        return x * self.scale  #?\n",
               "self.scale"}) == "self.scale = state['scale'].to(self.scale.device)");
}

TEST_CASE("The host is written as such") {
  CHECK(added({"x = given\nkept = []\nkept.append(rows.sum())  #!d\n"
               "def f():\n    scale = kept[0]\n    return x * scale  #?\nf()  #<\n",
               "scale", "x", "cuda:0", "cpu"}) == "kept.append(rows.sum().cpu())");
}

}  // namespace
}  // namespace devsan::report::fixes
