// Rules about what each use has to bring over by itself: weights that rest on the host, what objects keep that are no
// modules, copies that nobody waits for, and what a function of another model computes.
#include <catch2/catch.hpp>
#include <utility>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

// `x`, computed by a layer that brings its weight over, meets `shift`, which is made of a parameter on the CPU.
Finding past_the_layers() {
  Finding finding = add("shift");
  odd(finding).lineage = {created(line(12, "Net.__init__", "        self.shifts = nn.Parameter(torch.zeros(3, 4))"))};
  find(odd(finding), EvidenceKind::bound_at, line(28, "Net.forward", "        shift = self.shifts[kind]"), "shift");
  find(odd(finding), EvidenceKind::weight_brought_at,
       line(5, "Lean.forward", "        return F.linear(x, self.weight.to(x))"), "Net");
  return finding;
}

TEST_CASE("A weight that is taken past the layers that bring theirs over is to be brought over, too") {
  Finding finding = past_the_layers();
  const Finding told = explained(finding);
  CHECK(told.rule == "weight_not_brought");
  CHECK(cause_line(told) == 28);
  CHECK_THAT(told.root_cause->why, Contains("`shift` is made of a weight of `Net`, whose weights rest on the CPU") &&
                                       Contains("model.py:5 brings another one to cuda:0"));
  CHECK_THAT(told.fix->text, Contains("`shift = self.shifts[kind].to(x.device)`"));

  SECTION("in the line that fails, where that uses the weight itself") {
    odd(finding).is = NameKind::parameter;
    odd(finding).evidence.erase(odd(finding).evidence.begin());
    CHECK(cause_line(explained(finding)) == 30);
    CHECK(says(explained(finding), "this line uses it as it is"));
  }
  SECTION("not where a layer of torch uses it, which never brings anything over") {
    Frame layer = line(125, "Linear.forward", "        return F.linear(input, self.weight, self.bias)");
    layer.file = "/srv/.venv/lib/python3.11/site-packages/torch/nn/modules/linear.py";
    layer.torch = true;
    finding.stack.insert(finding.stack.begin(), layer);
    CHECK(explained(finding).rule != "weight_not_brought");
  }
  SECTION("not where somebody has brought it to the CPU") {
    odd(finding).lineage.insert(odd(finding).lineage.begin(), moved(line(14, "main", "    net.cpu()"), "cpu"));
    CHECK(explained(finding).rule != "weight_not_brought");
  }
}

// `shift` is what a distribution keeps, which a module keeps.
Finding within_a_distribution() {
  Finding finding = add("shift");
  odd(finding).lineage = {created(line(50, "main", "    shift = torch.zeros(4)"))};
  find(odd(finding), EvidenceKind::held_by_object, Frame{}, "Normal.loc");
  find(odd(finding), EvidenceKind::within_module_at, line(14, "Net.__init__", "        self.prior = prior(shift)"),
       "Net.prior");
  return finding;
}

TEST_CASE("What an object keeps that is no module does not move with the module that keeps the object") {
  Finding finding = within_a_distribution();
  const Finding told = explained(finding);
  CHECK(told.rule == "attribute_not_buffer");
  CHECK(cause_line(told) == 14);
  CHECK_THAT(told.root_cause->why, Contains("`shift` is kept within `prior`, a plain attribute of the module"));
  CHECK_THAT(told.fix->text, Contains("buffers of the module"));

  SECTION("not where the failing function itself gives the module that object") {
    odd(finding).evidence.back().at.function = "Net.forward";
    CHECK(explained(finding).rule != "attribute_not_buffer");
  }
  SECTION("not of what somebody has brought to where it is") {
    odd(finding).lineage.insert(odd(finding).lineage.begin(),
                                moved(line(52, "main", "    shift = shift.cpu()"), "cpu"));
    CHECK(explained(finding).rule != "attribute_not_buffer");
  }
  SECTION("not in a library") {
    odd(finding).evidence.back().at.library = true;
    CHECK(explained(finding).rule != "attribute_not_buffer");
  }
}

TEST_CASE("What a function of a copied module computes with the original's weights is told of where that is stored") {
  Finding finding = add("hidden");
  odd(finding).device = "cuda:1";
  odd(finding).lineage = {derived(line(9, "watch.<locals>.watched", "        return plain(x)"), "cuda:1")};
  find(odd(finding), EvidenceKind::closure_of_copy, line(11, "watch", "    layer.forward = watched"), "Linear.forward");
  const Finding told = explained(finding);
  CHECK(told.rule == "closure_of_copy");
  CHECK(cause_line(told) == 11);
  CHECK(says(told, "so `hidden` is computed with the weights of the original, on cuda:1"));
}

TEST_CASE("What a module keeps as it was loaded to the host is told of where it takes that over") {
  Finding finding = add("self.best", NameKind::attribute);
  odd(finding).lineage = {created(
      line(40, "main", "    saved = torch.load(path, map_location='cpu')", "torch.load(path, map_location='cpu')"))};
  find(odd(finding), EvidenceKind::held_by_module, Frame{}, "Net.best");
  find(odd(finding), EvidenceKind::attribute_set_at,
       line(22, "Net.on_load", "        self.count, self.best = saved['count'], saved['best']"), "Net.best");
  const Finding told = explained(finding);
  CHECK(told.rule == "loaded_elsewhere");
  CHECK(cause_line(told) == 22);
  odd(finding).evidence.back().at.function = "Net.__init__";
  CHECK(cause_line(explained(finding)) == 40);
}

// `host`, which `copy` makes on the host, is read before that copy has run.
Finding read_too_early(const Frame& copy, std::vector<Frame> calls) {
  Finding finding = add("host");
  finding.raised = false;
  finding.kind = Kind::async_race;
  finding.operands = {odd(finding)};
  finding.operands.front().odd = false;
  LineageStep step = moved(copy, "cpu");
  step.calls = std::move(calls);
  finding.operands.front().lineage = {step};
  Traffic traffic;
  traffic.race = trace::RaceKind::host_read_target;
  traffic.to_host = true;
  traffic.copy = copy;
  finding.traffic = traffic;
  return finding;
}

TEST_CASE("Who asks a helper for an asynchronous copy is the one who has to wait") {
  const Frame told =
      line(8, "fetch", "    return x.to('cpu', non_blocking=non_blocking)", "x.to('cpu', non_blocking=non_blocking)");
  const Frame middle =
      line(12, "Log.read", "        return fetch(x, non_blocking=eager)", "fetch(x, non_blocking=eager)");
  const Frame asks = line(20, "main", "    host = log.read(x, eager=True)", "log.read(x, eager=True)");
  const auto cause = [](const Frame& copy, std::vector<Frame> calls) {
    return cause_line(explained(read_too_early(copy, std::move(calls))));
  };
  CHECK(cause(told, {middle, asks}) == 20);
  CHECK(says(explained(read_too_early(told, {middle, asks})), "copy to the host, which model.py:8 makes"));

  SECTION("through all that a function hands on, and a comprehension") {
    const Frame inner =
        line(8, "fetch.<locals>.<listcomp>", "    return [x.to('cpu', **how) for x in xs]", "x.to('cpu', **how)");
    const Frame outer = line(8, "fetch", "    return [x.to('cpu', **how) for x in xs]");
    const Frame call = line(20, "main", "    fetch(xs, non_blocking=True)");
    CHECK(cause(inner, {outer, call}) == 20);
  }
  SECTION("not where the copy says so itself") {
    const Frame copy = line(8, "fetch", "    return x.to('cpu', non_blocking=True)", "x.to('cpu', non_blocking=True)");
    CHECK(cause(copy, {asks}) == 8);
  }
  SECTION("not where an attribute decides, or a call leaves it at its default") {
    const Frame own =
        line(8, "fetch", "    return x.to('cpu', non_blocking=self.eager)", "x.to('cpu', non_blocking=self.eager)");
    CHECK(cause(own, {asks}) == 8);
    CHECK(cause(told, {line(20, "main", "    fetch(x)")}) == 8);
    CHECK(cause(told, {}) == 8);
  }
  SECTION("not in a library") {
    CHECK(cause(told, {library_line(20, "main", "    fetch(x, non_blocking=True)")}) == 8);
  }
}

}  // namespace
}  // namespace devsan::report
