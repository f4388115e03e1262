#include <catch2/catch.hpp>

#include "patched.h"

namespace devsan::report::fixes {
namespace {

std::string added(const Failing& failing) {
  return patched(failing).added;
}

TEST_CASE("What makes a tensor is given the device") {
  CHECK(added({"import torch\nscale = torch.ones(3)  #!c\ny = x * scale  #?\n"}) ==
        "scale = torch.ones(3, device='cuda:0')");
  CHECK(added({"import torch\nscale = torch.load(path)  #!c\ny = x * scale  #?\n"}) ==
        "scale = torch.load(path, map_location='cuda:0')");
  CHECK(added({"import torch\nscale = torch.ones(3, device='cpu')  #!c\ny = x * scale  #?\n"}) ==
        "scale = torch.ones(3, device='cuda:0')");
}

TEST_CASE("A line that every rank runs is given the rank's own GPU, not the number of one rank's") {
  Failing failing{"import torch\nscale = torch.ones(3)  #!c\ny = x * scale  #?\n"};
  failing.other_device = failing.own_device = "cuda:2";
  CHECK(added(failing) == "scale = torch.ones(3, device='cuda')");
  failing.source = "import torch\nscale = torch.ones(3, device='cuda:0')  #!c\ny = x * scale  #?\n";
  failing.odd_device = "cuda:0";
  CHECK(added(failing) == "scale = torch.ones(3, device='cuda')");
  failing.other_device = "cuda:3";
  CHECK(added(failing) == "scale = torch.ones(3, device='cuda:3')");
}

TEST_CASE("What makes a tensor and takes no device has its result moved") {
  CHECK(added({"import torch\nscale = torch.from_numpy(a)  #!c\ny = x * scale  #?\n"}) ==
        "scale = torch.from_numpy(a).to('cuda:0')");
  CHECK(added({"import torch\nscale = torch.ones(3, **options)  #!c\ny = x * scale  #?\n"}) ==
        "scale = torch.ones(3, **options).to('cuda:0')");
}

TEST_CASE("What is made beside it in the same way is given the device, too") {
  CHECK(added({"import torch\ndef f(n):\n    return torch.zeros(n), torch.ones(n)  #!c\n"
               "scale, shift = f(3)\ny = x * scale  #?\n"}) ==
        "return torch.zeros(n, device='cuda:0'), torch.ones(n, device='cuda:0')");
  CHECK(added({"import torch\nclass Adapter:\n    def __init__(self):\n"
               "        self.down = torch.nn.Parameter(torch.ones(3))  #!c\n"
               "        self.up = torch.nn.Parameter(torch.ones(3))\n        self.size = torch.ones(3)\n"
               "    def run(self, x):\n        return x * self.down  #?\nAdapter().run(x)  #<\n",
               "self.down"}) ==
        "self.down = torch.nn.Parameter(torch.ones(3, device='cuda:0')) | "
        "self.up = torch.nn.Parameter(torch.ones(3, device='cuda:0'))");
}

TEST_CASE("A tensor that is moved behind its making is not made elsewhere: the move is what decides") {
  CHECK(added({"import torch\nx = given\nscale = torch.ones(3, device='cuda:0').cpu()  #!mc\ny = x * scale  #?\n"}) ==
        "scale = torch.ones(3, device='cuda:0')");
}

TEST_CASE("A variable is not replaced by one device") {
  CHECK(added({"import torch\ndef f(where):\n    return torch.ones(3, device=where)  #!c\n"
               "scale = f('cpu')\ny = x * scale  #?\n"})
            .empty());
}

TEST_CASE("A tensor that a module keeps becomes a buffer where it would not be moved with the module") {
  const std::string module =
      "import torch\nclass Net(torch.nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
      "        self.scale = torch.ones(n)  #!c\n"
      "    def forward(self, x):\n        return x * self.scale  #?\n";
  CHECK(added({module + "net = Net(3).to(device)\nnet(x)  #<\n", "self.scale"}) ==
        "self.register_buffer('scale', torch.ones(n), persistent=False)");
  CHECK(added({module + "net = Net(3)\nnet(x)  #<\n", "self.scale"}) == "self.scale = torch.ones(n, device='cuda:0')");
}

TEST_CASE("A part that cannot be registered is no buffer") {
  CHECK(added({"import torch\nclass Net(torch.nn.Module):\n    scale = None\n    def __init__(self, n):\n"
               "        super().__init__()\n        self.scale = torch.ones(n)  #!c\n"
               "    def forward(self, x):\n        return x * self.scale  #?\nNet(3).to(device)(x)  #<\n",
               "self.scale"}) == "self.scale = torch.ones(n, device='cuda:0')");
}

TEST_CASE("A parameter is no buffer") {
  CHECK(added({"import torch\nclass Net(torch.nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
               "        self.scale = torch.nn.Parameter(torch.ones(n))  #!c\n"
               "    def forward(self, x):\n        return x * self.scale  #?\nNet(3).to(device)(x)  #<\n",
               "self.scale"}) == "self.scale = torch.nn.Parameter(torch.ones(n, device='cuda:0'))");
}

TEST_CASE("A module that a module makes for itself is moved with it, and one in a plain list is not") {
  const std::string begin =
      "from torch import nn\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n";
  const std::string end =
      "    def forward(self, x):\n        return self.body(x)  #?\nnet = Net().to(device)\nnet(x)  #<\n";
  Failing failing{begin + "        self.body = nn.Linear(3, 3)  #!c\n" + end,
                  "self.body.weight",
                  "x",
                  "cpu",
                  "cuda:0",
                  trace::NameKind::parameter};
  CHECK(added(failing).empty());
  failing.source =
      begin + "        self.parts = [nn.Linear(3, 3)]  #!c\n" +
      "    def forward(self, x):\n        return self.parts[0](x)  #?\nnet = Net().to(device)\nnet(x)  #<\n";
  failing.odd = "self.parts[0].weight";
  CHECK(added(failing) == "self.parts = [nn.Linear(3, 3).to('cuda:0')]");
}

TEST_CASE("A module that is never moved is moved where it is made") {
  CHECK(added({"from torch import nn\nx = given\nnet = nn.Linear(3, 3)  #!c\ny = net(x)  #?\n", "net.weight", "x",
               "cpu", "cuda:0", trace::NameKind::parameter}) == "net = nn.Linear(3, 3).to(x.device)");
}

TEST_CASE("A module that another object holds as well is copied, so that it goes its own way") {
  const std::string rest =
      "class Exporter(nn.Module):\n    def __init__(self, policy):\n        super().__init__()\n"
      "        self.encoder = policy.encoder  #!\n"
      "class Policy(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
      "        self.encoder = nn.Linear(3, 3)  #c\n"
      "    def forward(self, x):\n        return self.encoder(x)  #?\n"
      "policy = Policy().to(device)\nExporter(policy).to('cpu')\npolicy(x)  #<\n";
  const Failing failing{"from torch import nn\n" + rest, "self.encoder.weight", "x", "cpu", "cuda:0",
                        trace::NameKind::parameter};
  CHECK(added(failing) == "import copy | self.encoder = copy.deepcopy(policy.encoder)");
  Failing imported = failing;
  imported.source = "import copy\nfrom torch import nn\n" + rest;
  CHECK(added(imported) == "self.encoder = copy.deepcopy(policy.encoder)");
}

}  // namespace
}  // namespace devsan::report::fixes
