// Rules about what belongs on the host: what NumPy is given, copies that are named for the host, functions that work
// there.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

Finding for_numpy(const std::string& source) {
  Finding finding = add("out[0]", NameKind::attribute);
  finding.message = "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first.";
  finding.where = line(30, "evaluate", source);
  finding.stack = {*finding.where};
  odd(finding).arg = "self";
  odd(finding).device = "cuda:0";
  odd(finding).lineage = {derived(line(12, "evaluate", "        y = model(x)"), "cuda:0")};
  wanted(finding).arg = "numpy";
  wanted(finding).device = "cpu";
  wanted(finding).device_argument = true;
  return finding;
}

TEST_CASE("What NumPy takes as a list is brought over where it is put there") {
  Finding finding = for_numpy("    return np.concatenate(out, 0)");
  find(odd(finding), EvidenceKind::entry_put_at, line(14, "evaluate", "        out.append(y)"), "out");
  const Finding told = explained(finding);
  CHECK(told.rule == "wanted_on_host");
  CHECK(cause_line(told) == 14);
  CHECK_THAT(told.root_cause->why, Contains("`out`, which is given to it as a whole, gets it here"));

  SECTION("not where one entry alone is taken out") {
    finding.where->source = "    return np.concatenate([out[0]])";
    CHECK(cause_line(explained(finding)) == 30);
  }
}

TEST_CASE("A function of NumPy in a module's forward() is to be one of torch") {
  Finding finding = for_numpy("        return np.sum(out, 0)");
  finding.where->function = "Mix.forward";
  find(odd(finding), EvidenceKind::given_at, line(41, "main", "mix(out)", "mix(out)"), "out");
  const Finding told = explained(finding);
  CHECK(cause_line(told) == 30);
  CHECK_THAT(told.fix->text, Contains("Use the function of torch that does the same"));

  SECTION("not one that makes an array") {
    finding.where->source = "        return np.asarray(out)";
    CHECK(cause_line(explained(finding)) == 41);
  }
  SECTION("not in any other function") {
    finding.where->function = "Mix.report";
    CHECK(cause_line(explained(finding)) == 41);
  }
}

TEST_CASE("Who brings its input from the host hands its result back there, for NumPy") {
  Finding finding = for_numpy("    return features.numpy()");
  find(odd(finding), EvidenceKind::returned_at, line(22, "Predictor.__call__", "        return normalize(y)"),
       "images");
  const Finding told = explained(finding);
  CHECK(told.rule == "wanted_on_host");
  CHECK(cause_line(told) == 22);
  CHECK_THAT(told.root_cause->why, Contains("brings `images` from the host to cuda:0"));
}

TEST_CASE("An array that meets what is differentiated has to become a tensor") {
  Finding finding = for_numpy("        return (td * weight).mean()");
  const Frame taken = line(25, "learn", "    weight = batch['weight']");
  find(odd(finding), EvidenceKind::array_beside_at, taken, "weight");
  const Finding told = explained(finding);
  CHECK(told.rule == "array_meets_tensor");
  CHECK(cause_line(told) == 25);
  CHECK_THAT(told.fix->text, Contains("torch.as_tensor(weight, device="));
}

TEST_CASE("A copy that is named for the host is not for what works on an accelerator") {
  Finding finding = add("edges");
  const Frame copy = line(26, "conditions", "    bounds_cpu = bounds.cpu()", "bounds.cpu()");
  const Frame call = line(31, "conditions", "        return Sampler(a, bounds_cpu)", "Sampler(a, bounds_cpu)");
  odd(finding).lineage = {derived(line(14, "Sampler.__init__", "        edges = torch.cat([-eye, eye])")),
                          moved(copy, "cpu")};
  find(odd(finding), EvidenceKind::device_from, call, "bounds");
  const Finding told = explained(finding);
  CHECK(told.rule == "host_copy_given");
  CHECK(cause_line(told) == 31);
  CHECK_THAT(told.fix->text, Contains("Take `bounds` here, and not the copy"));

  SECTION("not where no name says so") {
    odd(finding).lineage.back().at.source = "    limits = bounds.cpu()";
    odd(finding).evidence.front().at.source = "        return Sampler(a, limits)";
    CHECK(rule_of(finding) != "host_copy_given");
  }
  SECTION("not where the name means the original by then") {
    odd(finding).lineage.back().at.source = "    bounds_cpu = bounds_cpu.cpu()";
    CHECK(rule_of(finding) != "host_copy_given");
  }
  SECTION("not a line that gives something else") {
    odd(finding).evidence.front().at.source = "        return Sampler(a, bounds)";
    CHECK(rule_of(finding) != "host_copy_given");
  }
}

TEST_CASE("The index of what a function has brought to the host has to follow") {
  Finding finding = add("cost");
  finding.operands[0].arg = "indices[0]";
  odd(finding).arg = "self";
  finding.operands[0].name = "mask";
  const Frame brought = line(24, "Net.forward", "        cost = cost.cpu()", "cost.cpu()");
  odd(finding).lineage = {moved(brought, "cpu")};
  find(finding.operands[0], EvidenceKind::bound_at, line(25, "Net.forward", "        mask = out['mask']"), "mask");
  const Finding told = explained(finding);
  CHECK(told.rule == "index_not_brought");
  CHECK(cause_line(told) == 25);
  CHECK_THAT(told.fix->text, Contains("`mask = out['mask'].to('cpu')`"));

  SECTION("where it is used, if the function has computed it") {
    finding.operands[0].evidence.front().at.source = "        mask = out['score'] > 0";
    CHECK(cause_line(explained(finding)) == 30);
  }
  SECTION("not where another function brought it there") {
    odd(finding).lineage.front().at.function = "load";
    CHECK(rule_of(finding) != "index_not_brought");
  }
}

TEST_CASE("What is given to a function that works on the host came to the accelerator too early") {
  Finding finding = add("self.borders", NameKind::attribute);
  odd(finding).lineage = {created(line(13, "Bins.__init__", "        self.borders = torch.linspace(0, 1, 4)"))};
  wanted(finding).lineage = {created(line(52, "main", "    x = torch.tensor(rows, device=device)"), "cuda:0")};
  find(odd(finding), EvidenceKind::held_by_object, {}, "Bins.borders");
  find(odd(finding), EvidenceKind::result_moved_at, line(48, "predict", "    ids = ids.to(device)"), "ids");
  const Finding told = explained(finding);
  CHECK(told.rule == "given_to_host_function");
  CHECK(cause_line(told) == 52);

  SECTION("not where nobody moves the result") {
    odd(finding).evidence.pop_back();
    CHECK(rule_of(finding) != "given_to_host_function");
  }
  SECTION("not what a module keeps") {
    odd(finding).evidence.front().kind = EvidenceKind::held_by_module;
    CHECK(rule_of(finding) != "given_to_host_function");
  }
  SECTION("where the failing function moves what it picks, but not what it computes of both") {
    odd(finding).evidence.back().at = line(31, "Net.forward", "        return ids.to(device)");
    CHECK(rule_of(finding) != "given_to_host_function");
    wanted(finding).arg = "indices[0]";
    CHECK(rule_of(finding) == "given_to_host_function");
  }
}

// What an anchor generator made on its default device meets what a model on the CPU has computed.
Finding default_of_helper() {
  Finding finding = add("deltas");
  LineageStep weight = created(line(37, "Head.__init__", "        self.reg = nn.Conv2d(4, 4, 1)"));
  weight.innermost.file = "/srv/.venv/lib/python3.11/site-packages/torch/nn/modules/conv.py";
  odd(finding).lineage = {derived(line(40, "Head.boxes", "        deltas = self.reg(x)")), weight};
  wanted(finding).lineage = {created(line(18, "Anchors.grid", "        y = torch.arange(w, device=device)"), "cuda:0")};
  const Frame call = line(41, "Head.boxes", "        anchors = self.anchors.grid(size)", "self.anchors.grid(size)");
  finding.stack.push_back(call);
  find(wanted(finding), EvidenceKind::device_from, call, "device='cuda'");
  return finding;
}

TEST_CASE("An accelerator that is a default alone is wrong for a model on the CPU") {
  const Finding told = explained(default_of_helper());
  CHECK(told.rule == "alone_on_accelerator");
  CHECK(cause_line(told) == 41);

  SECTION("not one that somebody gave") {
    Finding finding = default_of_helper();
    wanted(finding).evidence.front().text = "device";
    CHECK(rule_of(finding) != "alone_on_accelerator");
  }
  SECTION("not for what no model has computed") {
    Finding finding = default_of_helper();
    odd(finding).lineage = {created(line(36, "load", "    deltas = torch.zeros(4)"))};
    CHECK(rule_of(finding) != "alone_on_accelerator");
  }
}

TEST_CASE("One hard-coded accelerator is wrong where a device was chosen for all") {
  Finding finding = add("self.emb.weight", NameKind::parameter);
  odd(finding).lineage = {created(line(14, "Net.__init__", "        self.emb = nn.Embedding(4, 4)"))};
  const Frame chosen = line(50, "<module>", "net = Net().to(device)", "Net().to(device)");
  const Frame named =
      line(41, "speak", "    sid = torch.LongTensor([speaker]).cuda()", "torch.LongTensor([speaker]).cuda()");
  find(odd(finding), EvidenceKind::stayed_at, chosen);
  wanted(finding).lineage = {moved(named, "cuda:0"), created(named)};
  find(wanted(finding), EvidenceKind::locals_elsewhere, {}, "cpu 8 of 9");
  find(wanted(finding), EvidenceKind::alone_on_device, {}, "cuda:0");
  finding.stack.push_back(line(43, "speak", "    return net(seq, sid)"));
  const Finding told = explained(finding);
  CHECK(told.rule == "alone_on_accelerator");
  CHECK(cause_line(told) == 41);

  SECTION("not where no line chose one") {
    odd(finding).evidence.clear();
    CHECK(rule_of(finding) != "alone_on_accelerator");
  }
  SECTION("not where other tensors of the program are there") {
    wanted(finding).evidence.pop_back();
    CHECK(rule_of(finding) != "alone_on_accelerator");
  }
}

}  // namespace
}  // namespace devsan::report
