#include <catch2/catch.hpp>

#include "patched.h"

namespace devsan::report::fixes {
namespace {

std::string added(const Failing& failing) {
  return patched(failing).added;
}

TEST_CASE("A move to where the operand is not wanted goes to where it is") {
  CHECK(added({"x = given\nscale = made.cpu()  #!m\ny = x * scale  #?\n"}) == "scale = made.to(x.device)");
  CHECK(added({"x = given\nscale = made.to('cpu')  #!m\ny = x * scale  #?\n"}) == "scale = made.to(x.device)");
  CHECK(added({"x = given\nscale = made.cuda()  #!m\ny = x * scale  #?\n", "scale", "x", "cuda:0", "cuda:1"}) ==
        "scale = made.to(x.device)");
}

TEST_CASE("A move to a dtype alone is none") {
  CHECK(added({"import torch\nx = given\nscale = made.to(torch.float16)  #!d\ny = x * scale  #?\n"}) ==
        "scale = made.to(torch.float16).to(x.device)");
}

TEST_CASE("A move of what came from there is left out") {
  CHECK(added({"import torch\nx = given\nmade = torch.ones(3, device='cuda:0')  #c\nscale = made.cpu()  #!m\n"
               "y = x * scale  #?\n"}) == "scale = made");
}

TEST_CASE("Moves to a device that is written are left out together, and a line that only moves is left out whole") {
  const std::string head = "import torch\nx = given\nscale = torch.ones(3, device='cuda:0')  #c\n";
  CHECK(added({head + "scale, shift = scale.to('cpu'), shift.to('cpu')  #!m\ny = x * scale + shift  #?\n"}) ==
        "scale, shift = scale, shift");
  CHECK(added({head + "scale, shift = scale.to(rows.device), shift.to(rows.device)  #!m\ny = x * scale  #?\n"}) ==
        "scale, shift = scale, shift.to(rows.device)");
  Failing failing{
      "import torch\nfrom torch import nn\nnet = nn.Linear(3, 3).cuda()  #c\nnet.to('cpu')  #!m\ny = net(x)  #?\n",
      "net.weight"};
  failing.odd_is = trace::NameKind::parameter;
  CHECK(added(failing).empty());
  CHECK(patched(failing).diff.find("\n-net.to('cpu')") != std::string::npos);
}

TEST_CASE("A result that nobody takes is taken") {
  CHECK(added({"x = given\nscale = rows.sum()\nscale.to(device)  #!\ny = x * scale  #?\n"}) ==
        "scale = scale.to(device)");
  CHECK(added({"x = given\nscale = rows.sum()\ny = x * scale  #?\nscale.to(device)  #!\n"}).empty());
}

TEST_CASE("A module moves in place: nobody has to take it") {
  CHECK(added({"from torch import nn\nx = given\nnet = nn.Linear(3, 3)  #c\nnet.to(device)  #!\ny = net(x)  #?\n",
               "net.weight", "x", "cpu", "cuda:0", trace::NameKind::parameter})
            .find("net = net") == std::string::npos);
}

TEST_CASE("A line that says the device for others says the wanted one") {
  CHECK(added({"import torch\nwhere = torch.device('cpu')  #!\nscale = torch.ones(3, device=where)  #c\n"
               "y = x * scale  #?\n"}) == "where = torch.device('cuda:0')");
}

TEST_CASE("An argument left out whose parameter is a device is given") {
  CHECK(added({"import torch\ndef f(n, device='cpu'):\n    return torch.ones(n, device=device)  #c\n"
               "def g(x):\n    scale = f(3)  #!\n    return x * scale  #?\ng(x)  #<\n"}) ==
        "scale = f(3, device=x.device)");
}

TEST_CASE("A key that leaves the device out gets it") {
  CHECK(added({"import torch\nkept = {}\ndef f(n, x):\n    key = (n, x.dtype)  #!\n    if key not in kept:\n"
               "        kept[key] = torch.ones(n, device=x.device)  #c\n    return kept[key]\n"
               "def g(x):\n    scale = f(3, x)\n    return x * scale  #?\ng(x)  #<\n",
               "scale", "x", "cuda:0", "cuda:1"}) == "key = (n, x.dtype, x.device)");
}

TEST_CASE("A line that decides no device has no patch") {
  CHECK(added({"def f(x, rows):\n    if rows.sum() > 0:  #!\n        scale = rows.sum()\n    return x * scale  #?\n"})
            .empty());
}

}  // namespace
}  // namespace devsan::report::fixes
