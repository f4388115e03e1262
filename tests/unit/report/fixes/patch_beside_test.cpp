// Patches of what stands around a tensor: containers, conditions, modules, generators, and lines that move other
// values.
#include <catch2/catch.hpp>

#include "patched.h"

namespace devsan::report::fixes {
namespace {

std::string added(const Failing& failing) {
  return patched(failing).added;
}

TEST_CASE("What is in a list that is looped over is moved") {
  CHECK(added({"class Means:\n    def load(self, package):\n        self.means = package['means']  #!\n"
               "    def run(self, x):\n        for scale in self.means:\n            x = x * scale  #?\n        return "
               "x\n"}) == "self.means = [one.to('cuda:0') for one in package['means']]");
}

TEST_CASE("What is in a dictionary is moved where it is a tensor") {
  CHECK(added({"import torch\ndef run(net, rows, device):\n    batch = collate(rows)  #!\n    net(**batch)  #<\n"
               "def net(x, scale):\n    return x * scale  #?\n"}) ==
        "batch = {key: one.to(device) if torch.is_tensor(one) else one for key, one in collate(rows).items()}");
}

TEST_CASE("A tensor that is indexed or looped over is no list") {
  CHECK(added({"def f(x, rows):\n    table = rows.sum(0)  #!\n    scale = table[0]  #d\n    return x * scale  #?\n"}) ==
        "table = rows.sum(0).to(x.device)");
}

TEST_CASE("A list of what is taken apart further is not moved") {
  CHECK(added({"class Steps:\n    def load(self, state):\n        self.groups = state['groups']  #!\n"
               "    def run(self, x):\n        for group in self.groups:\n            scale = group['scale']\n"
               "            x = x * scale  #?\n        return x\n"})
            .find("for one in") == std::string::npos);
}

TEST_CASE("A condition that keeps a value asks where it is") {
  const std::string use = "    def run(self, x):\n        self.prepare(x.device)\n        return x * self.scale  #?\n";
  CHECK(added({"import torch\nclass Net:\n    def prepare(self, device):\n        if self.scale is None:  #!\n"
               "            self.scale = torch.ones(3, device=device)  #c\n" +
                   use,
               "self.scale"}) == "if self.scale is None or self.scale.device != torch.device(device):");
  CHECK(added({"import torch\nclass Net:\n    def prepare(self, device):\n        if self.count > 3:  #!\n"
               "            return\n        self.scale = torch.ones(3, device=device)  #c\n" +
                   use,
               "self.scale"}) == "if self.count > 3 and self.scale.device == torch.device(device):");
}

TEST_CASE("A condition whose value follows no device stays as it is") {
  CHECK(added({"import torch\nclass Net:\n    def prepare(self, device):\n        if self.scale is None:  #!\n"
               "            self.scale = torch.ones(3)  #c\n    def run(self, x):\n        self.prepare(x.device)\n"
               "        return x * self.scale  #?\n",
               "self.scale"})
            .empty());
}

TEST_CASE("A line that moves one attribute moves the other as well") {
  CHECK(
      added(
          {"class State:\n    def __init__(self, size, scale):\n        self.size = size\n        self.scale = scale\n"
           "    def to(self, device):\n        self.size = self.size.to(device)  #!\n        return self\n"
           "def f(state, x):\n    return x * state.scale  #?\nx = given\nstate = State(a, b).to('cuda:0')\nf(state, x) "
           " #<\n",
           "state.scale"}) == "self.scale = self.scale.to(device)");
}

TEST_CASE("A list of the names that are moved gets the one that is left out") {
  CHECK(added({"def move(batch, device):\n    for name in ('size', 'mask'):  #!\n        batch[name] = "
               "batch[name].to(device)\n"
               "def f(x, batch):\n    move(batch, 'cuda:0')\n    return x * batch['scale']  #?\n",
               "batch['scale']"}) == "for name in ('size', 'mask', 'scale'):");
}

TEST_CASE("Random numbers are drawn where their generator is, and moved") {
  Failing failing{
      "import torch\ndef f(n, scale, device):\n    return torch.randn(n, generator=scale, device=device)  #!?\n"};
  failing.drawn = true;
  CHECK(added(failing) == "return torch.randn(n, generator=scale, device=scale.device).to(device)");
}

TEST_CASE("A module that a function or a constructor of a base gives is moved") {
  const std::string base =
      "import torch\nfrom torch import nn\nclass Net(nn.Module):\n    def __init__(self):\n"
      "        self.body = nn.Linear(3, 3)  #c\n    def forward(self, x):\n"
      "        return self.body(x)  #?\n";
  CHECK(added({base + "def build():\n    return Net()  #k\nnet = build()  #!k\nnet(x)  #<\n", "self.body.weight", "x",
               "cpu", "cuda:0", trace::NameKind::parameter}) == "net = build().to('cuda:0')");
  CHECK(added({base + "net = Net().eval()  #!k\nnet(x)  #<\n", "self.body.weight", "x", "cpu", "cuda:0",
               trace::NameKind::parameter}) == "net = Net().eval().to('cuda:0')");
}

TEST_CASE("An optimizer, and what a constructor gives, are not moved") {
  CHECK(
      added({"import torch\ndef build(net):\n    scale = torch.optim.Adagrad(net.parameters())  #!\n    return scale\n"
             "def step(x, net):\n    scale = build(net)\n    return x * scale  #?\n"})
          .empty());
  CHECK(added({"from torch import nn\nclass Base(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
               "        self.body = nn.Linear(n, n)  #c\n    def forward(self, x):\n        return self.body(x)  #?\n"
               "class Net(Base):\n    def __init__(self, n):\n        super().__init__(n)  #!k\nnet = Net(3)  #k\n"
               "net(x)  #<\n",
               "self.body.weight", "x", "cpu", "cuda:0", trace::NameKind::parameter})
            .find("__init__(n).to") == std::string::npos);
}

TEST_CASE("The device is given to a constructor of a base, and to what is made beside it") {
  CHECK(added({"import torch\nclass Metric:\n    def __init__(self, device='cpu'):\n"
               "        self.scale = torch.zeros(3, device=device)  #c\nclass Recall(Metric):\n"
               "    def update(self, x):\n        return x * self.scale  #?\nclass Share(Metric):\n    pass\n"
               "def main(device):\n    metrics = {'a': Recall(), 'b': Share()}  #!\n    metrics['a'].update(x)  #<\n"
               "main('cuda:0')\n",
               "self.scale"}) == "metrics = {'a': Recall(device=device), 'b': Share(device=device)}");
}

TEST_CASE("What is None at the place is not asked for its device") {
  CHECK(added({"import torch\ndef draw(n, context):\n    if context is None:\n        return torch.ones(n)  #!c\n"
               "    return torch.ones(n, device=context.device) + context.sum()\n"
               "def f(x):\n    scale = draw(3, None)\n    return x * scale  #?\n"}) ==
        "return torch.ones(n, device='cuda:0')");
}

TEST_CASE("What is made on a device is not moved there again") {
  CHECK(added({"import torch\nclass Net:\n    def grow(self, n, device):\n"
               "        self.scale = torch.ones(n, device=device)[1:]  #!\n"
               "    def run(self, x):\n        return x * self.scale  #?\n",
               "self.scale"})
            .find("[1:].to(") == std::string::npos);
}

TEST_CASE("The parts of a batch are moved together") {
  CHECK(added({"def run(net, loss, batches, x):\n    for scale, wanted in batches:  #!d\n"
               "        loss(x * scale, wanted)  #?\n"}) == "scale, wanted = scale.to(x.device), wanted.to(x.device)");
  CHECK(added({"def run(net, loss, batches, x):\n    for count, scale in enumerate(batches):  #!d\n"
               "        loss(x * scale, count)  #?\n"}) == "scale = scale.to(x.device)");
}

TEST_CASE("Attributes that a tuple takes together are moved together") {
  CHECK(added({"class Cache:\n    def grow(self, x, y):\n        scale, shift = self.scale, self.shift  #!\n"
               "        a = x * scale  #?\n        return a, y + shift\n"}) ==
        "scale, shift = self.scale.to(x.device), self.shift.to(x.device)");
}

TEST_CASE("Entries of one list in the failing line are moved together") {
  CHECK(added({"def f(x, waves):\n    return x * waves[0] + x.roll(1) * waves[1]  #!?\n", "waves[0]"}) ==
        "return x * waves[0].to(x.device) + x.roll(1) * waves[1].to(x.device)");
}

TEST_CASE("Parameters that a call gives from one object are moved together") {
  CHECK(added({"def turn(x, scale, shift):\n    return x * scale + x.roll(1) * shift  #!?\n"
               "class Net:\n    def run(self, x):\n        return turn(x, self.cos, self.sin)  #<\n"}) ==
        "return x * scale.to(x.device) + x.roll(1) * shift.to(x.device)");
  CHECK(added({"def turn(x, scale, count):\n    return x * scale / count  #!?\n"
               "class Net:\n    def run(self, x):\n        return turn(x, self.cos, self.count)  #<\n"}) ==
        "return x * scale.to(x.device) / count");
}

TEST_CASE("What an object keeps follows what passes through it") {
  Failing failing{"class Net:\n    def run(self, x):\n        return x * self.scale  #!?\n", "x", "self.scale"};
  failing.odd_is = trace::NameKind::local;
  failing.other_is = trace::NameKind::attribute;
  CHECK(added(failing) == "return x * self.scale.to(x.device)");
  failing.other_is = trace::NameKind::parameter;
  CHECK(added(failing) == "return x.to(self.scale.device) * self.scale");
}

TEST_CASE("The device of an operation is that of its tensor, or of its result") {
  CHECK(added({"def f(x, scale):\n    return scale + 2 * x  #!?\n", "scale", "2 * x"}) ==
        "return scale.to(x.device) + 2 * x");
  CHECK(added({"def f(x, y, scale):\n    return scale + x * y  #!?\n", "scale", "x * y"}) ==
        "return scale.to((x * y).device) + x * y");
}

TEST_CASE("A number of a shape is not moved") {
  CHECK(added({"def table(n):\n    return made(n)\ndef f(x):\n    length = x.shape[1]\n"
               "    scale = table(2 * length)  #!\n    return x * scale  #?\n"}) ==
        "scale = table(2 * length).to(x.device)");
}

}  // namespace
}  // namespace devsan::report::fixes
