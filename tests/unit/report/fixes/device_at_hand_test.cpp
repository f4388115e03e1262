#include <catch2/catch.hpp>

#include "patched.h"

namespace devsan::report::fixes {
namespace {

// What the maker in the marked line is given.
std::string device(const Failing& failing) {
  const std::string line = patched(failing).added;
  const std::size_t begin = line.find("device=");
  return begin == std::string::npos ? line : line.substr(begin + 7, line.rfind(')') - begin - 7);
}

TEST_CASE("In the function that fails the device is that of the other operand") {
  const std::string end = "\n    scale = torch.ones(3)  #!c\n    return x * scale  #?\n";
  CHECK(device({"import torch\ndef f(x):" + end}) == "x.device");
  CHECK(device({"import torch\ndef f(x, dev='cuda:0'):" + end}) == "x.device");
  CHECK(device({"import torch\ndef f(x):\n    scale = torch.ones(3)  #!c\n    return x[:, 0] * scale  #?\n", "scale",
                "x[:, 0]"}) == "x.device");
  CHECK(device({"import torch\ndef f(x):\n    scale = torch.ones(3)  #!c\n    return x.sum(0) * scale  #?\n", "scale",
                "x.sum(0)"}) == "x.device");
}

TEST_CASE("A name that has no value yet, or another one, is not asked") {
  CHECK(
      device(
          {"import torch\ndef f(a):\n    scale = torch.ones(3)  #!c\n    x = a.cuda()\n    return x * scale  #?\n"}) ==
      "'cuda:0'");
  CHECK(device({"import torch\ndef f(x):\n    scale = torch.ones(3)  #!c\n    x = g(x)\n    return x * scale  #?\n"}) ==
        "'cuda:0'");
}

TEST_CASE("A variable, parameter or attribute that may be the device is named") {
  const std::string end = "\ny = x * scale  #?\n";
  CHECK(device({"import torch\ndevice = torch.device('cuda', 0)\ndef f():\n    return torch.ones(3)  #!c\n"
                "scale = f()" +
                end}) == "device");
  CHECK(device({"import torch\ndef f(n, device):\n    return torch.ones(n)  #!c\nscale = f(3, where)" + end}) ==
        "device");
  CHECK(device({"import torch\nclass Net:\n    def __init__(self, dev):\n        self.device = dev\n"
                "    def make(self):\n        return torch.ones(3)  #!c\nscale = Net(d).make()" +
                end}) == "self.device");
  CHECK(device({"import torch\nhome = 'cuda:0'\ndef f():\n    return torch.ones(3)  #!c\nscale = f()" + end}) ==
        "home");
}

TEST_CASE("A device that is known to be another one is not named") {
  const std::string end = "\ny = x * scale  #?\n";
  CHECK(device({"import torch\ndevice = torch.device('cpu')\ndef f():\n    return torch.ones(3)  #!c\nscale = f()" +
                end}) == "'cuda:0'");
  CHECK(device({"import torch\ndef f(device='cpu'):\n    return torch.ones(3)  #!c\nscale = f()  #<" + end}) ==
        "'cuda:0'");
  CHECK(device({"import torch\ndef f():\n    return torch.ones(3)  #!c\nscale = f()\ndevice = 'cuda:1'" + end}) ==
        "'cuda:0'");
}

TEST_CASE("What the function gives to others, and a tensor that it gets, say the device") {
  const std::string end = "\nscale = f(a)\ny = x * scale  #?\n";
  CHECK(device({"import torch\ndef f(a):\n    b = a.ids.to(a.place.device)\n    return torch.ones(3)  #!c" + end}) ==
        "a.place.device");
  CHECK(device({"import torch\ndef f(a):\n    return torch.ones(a.shape)  #!c" + end}) == "a.device");
  CHECK(device({"import torch\ndef f(a):\n    return torch.ones(a['n'])  #!c" + end}) == "'cuda:0'");
}

}  // namespace
}  // namespace devsan::report::fixes
