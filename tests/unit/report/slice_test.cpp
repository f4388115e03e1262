// Which lines an operand may have come through, and by which role.
#include <algorithm>
#include <catch2/catch.hpp>

#include "program_findings.h"
#include "sample_program.h"

namespace devsan::report {
namespace {

using program_findings::created;
using program_findings::odd;
using Roles = std::set<std::string>;

bool has(const Roles& roles, const char* role) {
  return roles.contains(role);
}

TEST_CASE("An assignment gives a variable its value, and a factory makes that") {
  SampleProgram program(R"(
def step(x):
    w = torch.zeros(4)  # made
    v = torch.zeros(4)  # other
    return x + w  # fails
)");
  const Finding finding = program.failing("step", "x + w", "w");
  CHECK(program.roles(finding, "made") == Roles{"bound", "made"});
  CHECK(program.roles(finding, "other").empty());
  CHECK(has(program.roles(finding, "fails"), "used"));
}

TEST_CASE("An argument comes from the call that ran, and that is nearer than other calls") {
  SampleProgram program(R"(
def step(x, w):
    return x + w  # fails
def main(a, b):
    step(a, torch.ones(4))  # ran
    step(a, b)  # other
)");
  const Finding finding = program.failing("step", "x + w", "w", {program.at("ran", "main")});
  const auto distance = [&](const char* mark) {
    double nearest = 100;
    for (const slice::Place& place : program.slice(finding)) {
      const bool fits = place.side == slice::Side::odd && place.role == slice::Role::argument;
      if (fits && place.node.line() == program.line(mark)) nearest = std::min(nearest, place.distance);
    }
    return nearest;
  };
  CHECK(has(program.roles(finding, "ran"), "argument"));
  CHECK(has(program.roles(finding, "ran"), "made"));
  CHECK(distance("ran") < distance("other"));
}

TEST_CASE("A default is used where the call leaves the argument out") {
  SampleProgram program(R"(
def step(x, w=torch.ones(4)):  # default
    return x + w  # fails
step(a)  # call
)");
  const Finding finding = program.failing("step", "x + w", "w", {program.at("call", "<module>", "step(a)")});
  CHECK(has(program.roles(finding, "default"), "default_used"));
  CHECK(has(program.roles(finding, "call"), "argument_left_out"));
}

TEST_CASE("A default stands by where the call gives the argument") {
  SampleProgram program(R"(
def step(x, w=torch.ones(4)):  # default
    return x + w  # fails
step(a, b)  # call
)");
  const Finding finding = program.failing("step", "x + w", "w", {program.at("call", "<module>", "step(a, b)")});
  CHECK_FALSE(has(program.roles(finding, "default"), "default_used"));
  CHECK(has(program.roles(finding, "call"), "argument"));
}

TEST_CASE("What a function returns is followed into it") {
  SampleProgram program(R"(
def weights():
    return torch.ones(4)  # returned
def step(x):
    w = weights()  # called
    return x + w  # fails
)");
  const Finding finding = program.failing("step", "x + w", "w");
  CHECK(has(program.roles(finding, "returned"), "returned"));
  CHECK(has(program.roles(finding, "returned"), "made"));
  CHECK(has(program.roles(finding, "called"), "bound"));
}

TEST_CASE("An attribute comes from the lines that store it") {
  SampleProgram program(R"(
class Net(nn.Module):
    def __init__(self):
        self.w = torch.ones(4)  # stored
        self.v = torch.ones(4)  # other
    def forward(self, x):
        return x + self.w  # fails
)");
  const Finding finding = program.failing("Net.forward", "x + self.w", "self.w", {}, trace::NameKind::attribute);
  CHECK(has(program.roles(finding, "stored"), "stored"));
  CHECK(has(program.roles(finding, "stored"), "made"));
  CHECK_FALSE(has(program.roles(finding, "other"), "stored"));
}

TEST_CASE("An entry comes from the line that sets its key") {
  SampleProgram program(R"(
def step(x):
    kept = {}
    kept["w"] = torch.ones(4)  # entry
    kept["v"] = torch.ones(4)  # other
    return x + kept["w"]  # fails
)");
  const Finding finding = program.failing("step", "x + kept[\"w\"]", "kept['w']");
  CHECK(has(program.roles(finding, "entry"), "entered"));
  CHECK(program.roles(finding, "other").empty());
}

TEST_CASE("A list comes from the lines that fill it") {
  SampleProgram program(R"(
def step(x):
    kept = []
    kept.append(torch.ones(4))  # filled
    return x + torch.stack(kept)  # fails
)");
  const Finding finding = program.failing("step", "x + torch.stack(kept)", "torch.stack(kept)");
  CHECK(has(program.roles(finding, "filled"), "filled"));
}

TEST_CASE("A loop over zip() gives a variable what stands at its place") {
  SampleProgram program(R"(
def step():
    xs = load()  # xs
    ws = make()  # ws
    for x, w in zip(xs, ws):  # loop
        y = x + w  # fails
)");
  const Finding finding = program.failing("step", "x + w", "w");
  CHECK(has(program.roles(finding, "loop"), "looped_over"));
  CHECK(has(program.roles(finding, "ws"), "bound"));
  CHECK(program.roles(finding, "xs").empty());
}

TEST_CASE("A conditional chooses the value") {
  SampleProgram program(R"(
def step(x, old):
    w = torch.ones(4) if old is None else old  # chosen
    return x + w  # fails
)");
  CHECK(has(program.roles(program.failing("step", "x + w", "w"), "chosen"), "chosen"));
}

TEST_CASE("A condition guards a move, and so does an exit before it") {
  SampleProgram program(R"(
def step(x, w, wanted):
    if wanted:  # guard
        w = w.to(x.device)  # moved
    return x + w  # fails
)");
  const Finding finding = program.failing("step", "x + w", "w");
  CHECK(has(program.roles(finding, "guard"), "guarded"));
  CHECK(has(program.roles(finding, "moved"), "moved"));

  SampleProgram leaving(R"(
def place(w, device):
    if w is None:  # exit
        return w
    w = w.to(device)  # moved
    return w
def step(x, w):
    w = place(w, x.device)
    return x + w  # fails
)");
  const Finding other = leaving.failing("step", "x + w", "w");
  CHECK(has(leaving.roles(other, "exit"), "guarded"));
  CHECK(has(leaving.roles(other, "moved"), "moved"));
}

TEST_CASE("The module that holds a parameter is followed to where it is made and moved") {
  SampleProgram program(R"(
class Net(nn.Module):
    def __init__(self):
        self.weight = nn.Parameter(torch.ones(4))
    def forward(self, x):
        return x + self.weight  # fails
net = Net()  # made
net.to("cuda")  # moved
net(x)  # call
)");
  const Finding finding = program.failing("Net.forward", "x + self.weight", "self.weight",
                                          {program.at("call", "<module>", "net(x)")}, trace::NameKind::parameter);
  CHECK(has(program.roles(finding, "made"), "constructed"));
  CHECK(has(program.roles(finding, "moved"), "object_moved"));
}

TEST_CASE("A move whose result is dropped is told from one that is kept under another name") {
  SampleProgram program(R"(
def step(x):
    w = make()
    w.to(x.device)  # dropped
    v = w.to(x.device)  # kept
    return x + w  # fails
)");
  const Finding finding = program.failing("step", "x + w", "w");
  CHECK(has(program.roles(finding, "dropped"), "result_dropped"));
  CHECK(has(program.roles(finding, "kept"), "moved_apart"));
}

TEST_CASE("Places on the way to the step that decided the device are marked") {
  SampleProgram program(R"(
def step(x, flag):
    first = torch.ones(4)  # origin
    second = torch.rand(4)  # elsewhere
    w = first if flag else second  # between
    return x + w  # fails
)");
  Finding finding = program.failing("step", "x + w", "w");
  odd(finding).lineage = {created(program.at("origin", "step", "torch.ones(4)"))};
  const auto leads = [&](const char* mark) {
    std::set<bool> found;
    for (const slice::Place& place : program.slice(finding)) {
      const bool fits = place.side == slice::Side::odd && place.role == slice::Role::bound && place.leads_to_origin;
      if (fits && place.node.line() == program.line(mark)) found.insert(*place.leads_to_origin);
    }
    return found;
  };
  CHECK(leads("origin") == std::set<bool>{true});
  CHECK(leads("between") == std::set<bool>{true});
  CHECK(leads("elsewhere") == std::set<bool>{false});
  CHECK(has(program.roles(finding, "origin"), "history_created"));
  CHECK_FALSE(has(program.roles(finding, "elsewhere"), "history_created"));
}

TEST_CASE("A default device belongs to the program, whatever the operand comes through") {
  SampleProgram program(R"(
torch.set_default_device("cuda")  # default
def step(x, w):
    return x + w  # fails
)");
  const auto places = program.slice(program.failing("step", "x + w", "w"));
  CHECK(std::ranges::any_of(places, [&](const slice::Place& place) {
    return place.side == slice::Side::program && place.role == slice::Role::default_device &&
           place.node.line() == program.line("default");
  }));
}

TEST_CASE("Without the text of the file there is no slice") {
  SampleProgram program("return x + w  # fails\n");
  Finding finding = program.failing("<module>", "x + w", "w");
  finding.where->file = finding.stack.front().file = "/srv/other.py";
  CHECK(program.slice(finding).empty());
}

}  // namespace
}  // namespace devsan::report
