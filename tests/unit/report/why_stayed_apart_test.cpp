// What stayed where it was while a model, a part of it or what goes with it moved.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

const Frame kModel = line(50, "main", "    model = adapt(load())");

TEST_CASE("A part that a function puts into a model which lies on accelerators is made there") {
  Finding finding = add("self.score.weight", NameKind::parameter);
  const Frame put = line(43, "adapt", "    model.score = nn.Linear(4, n)", "nn.Linear(4, n)");
  odd(finding).lineage = {by_module(created(put))};
  find(odd(finding), EvidenceKind::attribute_set_at, put, "Backbone.score");
  find(odd(finding), EvidenceKind::module_bound_at, kModel, "model");
  CHECK(cause_line(explained(finding)) == 50);
  find(odd(finding), EvidenceKind::model_spread, {}, "Backbone");
  CHECK(rule_of(finding) == "module_not_moved");
  CHECK(cause_line(explained(finding)) == 43);
}

TEST_CASE("A tensor that a model registers as a buffer is made where the model is") {
  Finding finding = add("self.weights", NameKind::buffer);
  odd(finding).lineage = {created(line(26, "weights_of", "    w = torch.zeros(n)", "torch.zeros(n)"))};
  find(odd(finding), EvidenceKind::module_bound_at, kModel, "model");
  find(odd(finding), EvidenceKind::weights_elsewhere, {}, "cuda:0 31 of 33 Acquisition");
  CHECK(rule_of(finding) == "module_not_moved");
  CHECK(cause_line(explained(finding)) == 26);
  CHECK_THAT(explained(finding).fix->text, Contains("torch.zeros(n, device='cuda:0')"));

  SECTION("one that a method replaces long after the move, in that line") {
    const Frame stored = line(27, "Positions.grow", "        self.table = sinusoids(n)", "sinusoids(n)");
    odd(finding).lineage.front().calls = {stored,
                                          line(32, "Positions.forward", "            self.grow(n)", "self.grow(n)")};
    find(odd(finding), EvidenceKind::attribute_set_at, stored, "Positions.table");
    CHECK(cause_line(explained(finding)) == 27);
  }
}

TEST_CASE("A part that a method makes anew was not made by the constructor that calls the method of another object") {
  Finding finding = add("self.feed_forward.weight", NameKind::parameter);
  const Frame made = line(22, "Head.resize", "        self.feed_forward = nn.Linear(n, 2)", "nn.Linear(n, 2)");
  const Frame call = line(33, "Model.__init__", "            head.resize(n)", "head.resize(n)");
  odd(finding).lineage = {called_by(created(made), {call})};
  find(odd(finding), EvidenceKind::attribute_set_at, made, "Head.feed_forward");
  find(odd(finding), EvidenceKind::module_bound_at, kModel, "model");
  find(odd(finding), EvidenceKind::model_spread, {}, "Model");
  CHECK(cause_line(explained(finding)) == 22);

  SECTION("but by its own") {
    odd(finding).lineage.front().calls = {line(12, "Head.__init__", "        self.resize(n)", "self.resize(n)")};
    CHECK(cause_line(explained(finding)) == 50);
  }
}

TEST_CASE("A plain attribute that its module left, and that a forward makes when it needs it, is told where declared") {
  Finding finding = add("x");
  wanted(finding).is = NameKind::attribute;
  wanted(finding).lineage = {
      created(line(28, "Net.forward", "            self.index = torch.arange(4, device=x.device)"), "cuda:0")};
  find(odd(finding), EvidenceKind::copied_away, line(36, "main", "    model(x.to(dev))", "x.to(dev)"), "cuda:0");
  find(odd(finding), EvidenceKind::given_at, line(39, "main", "    model(x)", "model(x)"), "x");
  CHECK(rule_of(finding) == "moved_for_other_call");
  find(wanted(finding), EvidenceKind::held_by_module, {}, "Net.index");
  find(wanted(finding), EvidenceKind::holder_moved_at, line(38, "main", "    model.to('cpu')"), "cpu");
  find(wanted(finding), EvidenceKind::attribute_set_at, wanted(finding).lineage.front().at, "Net.index");
  find(wanted(finding), EvidenceKind::declared_at, line(18, "Net.__init__", "        self.index = None"), "Net.index");
  CHECK(rule_of(finding) == "module_left_attribute");
  CHECK(cause_line(explained(finding)) == 18);
}

TEST_CASE("A call that gives the tensor a buffer was registered from is to give the buffer") {
  Finding finding = add("matrix");
  odd(finding).lineage = {created(line(5, "Grid", "    _matrix = torch.ones(4)"))};
  find(odd(finding), EvidenceKind::moved_with_module, line(34, "<module>", "Grid().to(dev)(u)", "Grid().to(dev)"),
       "cuda:0");
  find(odd(finding), EvidenceKind::given_at, line(29, "Grid.forward", "        return interpolate(u, self._matrix)"),
       "self._matrix");
  CHECK(rule_of(finding) == "left_behind");
  CHECK(cause_line(explained(finding)) == 29);
}

TEST_CASE("Two results of one value are no copy and its original") {
  Finding finding = add("mean_cache");
  const LineageStep shared = created(line(5, "main", "    x = torch.rand(4)"));
  const LineageStep cached =
      with_op(derived(library_line(35, "solve", "    return torch.cholesky_solve(b, a)")), "aten::cholesky_solve");
  const LineageStep computed = with_op(derived(line(6, "main", "    y = x.sin()")), "aten::sin");
  odd(finding).lineage = {cached, computed, shared};
  const LineageStep used = with_op(derived(library_line(9, "kernel", "    return x.exp()"), "cuda:0"), "aten::exp");
  wanted(finding).lineage = {
      used, by_module(moved(line(39, "Scanner.__init__", "        self.model = model.to(device)"), "cuda:0")), shared};
  CHECK(rule_of(finding) == "left_behind");
  CHECK(cause_line(explained(finding)) == 39);
  CHECK(says(explained(finding), "and it was kept"));
  odd(finding).lineage.front().at = line(7, "main", "    mean_cache = torch.cholesky_solve(y, a)");
  CHECK(rule_of(finding) != "left_behind");
}

TEST_CASE("A copy that a line drops is told of what was computed from the tensor, too") {
  Finding finding = add("weights");
  odd(finding).lineage = {derived(line(28, "Net.pool", "        weights = mask / mask.sum()")),
                          created(line(3, "collate", "    mask = torch.ones(4)"))};
  find(odd(finding), EvidenceKind::source_copied_at,
       line(12, "Batch.to", "        self.mask.to(device)", "self.mask.to(device)"), "cuda:0");
  CHECK(rule_of(finding) == "to_result_dropped");
  CHECK(cause_line(explained(finding)) == 12);
}

TEST_CASE("What is sent to the host with a device is brought back to that, and not to where it came from") {
  Finding finding = add("saved");
  odd(finding).device = "cuda:1";
  odd(finding).lineage = {
      moved(line(24, "Offload.unpack", "        return tensor.to(device)", "tensor.to(device)"), "cuda:1"),
      moved(line(20, "Offload.pack", "        return tensor.to('cpu'), self.device", "tensor.to('cpu')"), "cpu"),
      derived(line(9, "Block.forward", "        return x + 1"), "cuda:0")};
  CHECK(rule_of(finding) == "moved_away");
  CHECK(cause_line(explained(finding)) == 20);
}

TEST_CASE("The type alone of a device takes a layer back to the GPU that is current") {
  Finding finding = add("h");
  odd(finding).device = "cuda:1";
  odd(finding).lineage = {moved(line(29, "<module>", "h = h.to(stage)", "h.to(stage)"), "cuda:1")};
  wanted(finding).is = NameKind::parameter;
  wanted(finding).lineage = {by_module(moved(line(22, "compress", "    layer.to(back)", "layer.to(back)"), "cuda:0")),
                             by_module(moved(line(20, "compress", "    layer.to('cpu')", "layer.to('cpu')"), "cpu")),
                             by_module(moved(line(11, "<module>", "layer = Layer().to(second)"), "cuda:1"))};
  CHECK(rule_of(finding) != "current_device");
  find(wanted(finding), EvidenceKind::device_from, line(19, "compress", "    back = layer.weight.device.type"), "back");
  CHECK(rule_of(finding) == "current_device");
  CHECK(cause_line(explained(finding)) == 19);
}

TEST_CASE("A device with a number is none that is current, and a library may choose one by itself") {
  Finding finding = add("m");
  odd(finding).device = "cuda:1";
  const Frame numbered = line(12, "main", "    m = make(torch.device('cuda', 1))", "make(torch.device('cuda', 1))");
  odd(finding).lineage = {created(numbered, "cuda:1")};
  CHECK(rule_of(finding) != "current_device");
  LineageStep chosen = moved(line(33, "Soup.add", "        self.members.append(load(path))", "load(path)"), "cuda:0");
  chosen.within = {library_line(8, "load", "    return read(path, device=infer())")};
  wanted(finding).lineage = {chosen};
  CHECK(rule_of(finding) == "current_device");
  CHECK(cause_line(explained(finding)) == 33);
}

TEST_CASE("A function that asks for what it computes with to be where its input is leaves out another argument") {
  Finding finding = add("positions");
  const Frame bound = line(28, "Net.forward", "        positions = ids[:, None].float()");
  odd(finding).lineage = {derived(bound), created(line(40, "<module>", "ids = torch.tensor([1])"))};
  find(odd(finding), EvidenceKind::bound_at, bound, "positions");
  find(wanted(finding), EvidenceKind::stayed_at, line(27, "Net.forward", "        f = self.freqs[None].to(x.device)"));
  CHECK(rule_of(finding) == "moved_beside");
  CHECK(cause_line(explained(finding)) == 28);
}

}  // namespace
}  // namespace devsan::report
