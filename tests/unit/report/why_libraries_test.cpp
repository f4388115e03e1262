// What helpers, libraries and models that lie on several devices hand back, and who could bring it over.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

TEST_CASE("What a processor has computed is moved by one of its callers, and not by this one") {
  Finding finding = add("batch");
  odd(finding).lineage = {
      with_op(derived(line(5, "Processor.__call__", "        return torch.cat(parts)")), "aten::cat"),
      created(line(40, "<module>", "pages = [torch.rand(3)]"))};
  find(odd(finding), EvidenceKind::computed_alike_moved_at,
       line(12, "Detector.forward", "        maps = self.model(batch.to(device))"));
  find(odd(finding), EvidenceKind::asked_apart_at,
       line(20, "Orientation.forward", "        batches = self.pre(crops)", "self.pre(crops)"));
  CHECK(rule_of(finding) == "moved_by_other_caller");
  CHECK(cause_line(explained(finding)) == 20);
  CHECK(says(explained(finding), "model.py:5, which computes it on the CPU"));
}

TEST_CASE("What a module computes that a method has made anew is brought over where it was made") {
  Finding finding = add("self.positions(n)", NameKind::temporary);
  const Frame anew = line(21, "Encoder.resize", "        self.positions = Positions(n)", "Positions(n)");
  LineageStep weight = called_by(created(line(5, "Positions.__init__", "        super().__init__(n)")), {anew});
  weight.innermost.file = "/venv/lib/python3.11/site-packages/torch/nn/modules/sparse.py";
  odd(finding).lineage = {with_op(derived(line(9, "Positions.forward", "    return super().forward(i)")), "aten::mul"),
                          weight};
  find(odd(finding), EvidenceKind::made_alike_moved_at, line(36, "<module>", "encoder = Encoder().to(dev)"));
  find(odd(finding), EvidenceKind::asked_apart_at, anew);
  CHECK(rule_of(finding) != "moved_by_other_caller");
  find(odd(finding), EvidenceKind::model_spread, {}, "Encoder");
  CHECK(rule_of(finding) == "moved_by_other_caller");
  CHECK(cause_line(explained(finding)) == 21);
}

TEST_CASE("The output of a model that lies on several devices is brought to where its input is") {
  Finding finding = add("ids");
  odd(finding).device = "cuda:1";
  odd(finding).lineage = {moved(line(45, "<module>", "ids = ids.to(first)"), "cuda:1")};
  const Frame handed = line(38, "generate", "        logits = process(ids, logits)", "process(ids, logits)");
  find(odd(finding), EvidenceKind::crossing_at, handed, "ids");
  find(odd(finding), EvidenceKind::model_spread, {}, "Decoder");
  find(wanted(finding), EvidenceKind::perhaps_bound_at,
       line(36, "generate", "        logits = model(ids)[:, -1]", "model(ids)[:, -1]"), "logits");
  CHECK(cause_line(explained(finding)) == 38);
  find(wanted(finding), EvidenceKind::handed_back_at, line(22, "Decoder.forward", "        return self.head(h)"),
       "model");
  CHECK(rule_of(finding) == "crossed_over");
  CHECK(cause_line(explained(finding)) == 36);
  CHECK_THAT(explained(finding).fix->text, Contains("ids.device"));
}

TEST_CASE("An index that a function finds in what it is given goes to what it picks from") {
  Finding finding = add("image");
  odd(finding).arg = "self";
  wanted(finding).arg = "indices[0]";
  odd(finding).lineage = {created(line(40, "<module>", "scene = {'image': torch.rand(2)}"))};
  wanted(finding).lineage = {
      with_op(derived(line(28, "Net.forward", "        inside = torch.nonzero(mask)"), "cuda:0"), "aten::nonzero"),
      created(line(41, "<module>", "mask = torch.ones(2, device=dev)"), "cuda:0")};
  CHECK(rule_of(finding) == "index_not_brought");
  CHECK(cause_line(explained(finding)) == 28);

  SECTION("not where the function makes what it picks from") {
    odd(finding).lineage.front().at = line(27, "Net.forward", "        image = torch.rand(2)");
    CHECK(rule_of(finding) != "index_not_brought");
  }
}

TEST_CASE("An index that an autograd Function saved beside a copy for the host is brought over where it was made") {
  Finding finding = add("host");
  finding.where->function = finding.stack.front().function = "CallMany.backward";
  odd(finding).arg = "self";
  wanted(finding).arg = "indices[0]";
  odd(finding).lineage = {moved(line(15, "CallMany.forward", "        host = x.cpu()", "x.cpu()"), "cpu"),
                          created(line(34, "<module>", "x = torch.randn(4, device=dev)"), "cuda:0")};
  wanted(finding).lineage = {
      moved(line(17, "CallMany.forward", "        rows = torch.as_tensor(r, device=x.device)"), "cuda:0")};
  find(wanted(finding), EvidenceKind::bound_at, line(26, "CallMany.backward", "        rows, host = ctx.saved_tensors"),
       "rows");
  CHECK(rule_of(finding) == "index_not_brought");
  CHECK(cause_line(explained(finding)) == 17);
}

TEST_CASE("What a library reads from a file is told of where the program asks for it") {
  Finding finding = add("up");
  LineageStep load =
      with_op(created(line(34, "Merger.__init__", "        self.tensors = load_file(path)", "load_file(path)")),
              "aten::set_.source_Storage");
  load.within = {library_line(12, "load_file", "    result[k] = f.get_tensor(k)")};
  load.within.front().file = "/venv/lib/python3.11/site-packages/safetensors/torch.py";
  odd(finding).lineage = {load};
  CHECK(rule_of(finding) == "loaded_elsewhere");
  CHECK(cause_line(explained(finding)) == 34);
  CHECK_THAT(explained(finding).fix->text, Contains("load_file(path, device='cuda:0')"));

  SECTION("or where a list of it is kept, which a loop goes through") {
    odd(finding).lineage.front().at = line(38, "<module>", "saved = torch.load(path, map_location='cpu')");
    odd(finding).lineage.front().op = "aten::set_.source_Storage_storage_offset";
    odd(finding).lineage.front().innermost.file = "/venv/lib/python3.11/site-packages/torch/serialization.py";
    odd(finding).lineage.front().within.clear();
    find(odd(finding), EvidenceKind::list_stored_at,
         line(31, "Average.load_state_dict", "        self.shadow = state['shadow']"), "Average.shadow");
    CHECK(cause_line(explained(finding)) == 31);
  }
}

TEST_CASE("What a library made and an object keeps is moved where the object takes it") {
  Finding finding = add("ratio");
  LineageStep made = created(line(34, "train", "    scheduler = Scheduler(50)", "Scheduler(50)"));
  made.within = {library_line(12, "Scheduler.__init__", "    self.betas = torch.linspace(0, 1, n)")};
  odd(finding).lineage = {with_op(derived(line(16, "Loss.weights", "        ratio = self.alphas ** 2")), "aten::pow"),
                          made};
  CHECK(cause_line(explained(finding)) == 34);
  find(odd(finding), EvidenceKind::kept_source_at, line(10, "Loss.__init__", "        self.alphas = scheduler.alphas"),
       "self.alphas");
  CHECK(rule_of(finding) == "made_without_device");
  CHECK(cause_line(explained(finding)) == 10);
}

TEST_CASE("A batch that the program draws from a loader by hand is moved where it is drawn") {
  Finding finding = add("x");
  const Frame drawn = line(12, "Task.on_fit_start", "        x, _ = next(iter(loader))");
  LineageStep step = with_op(derived(drawn), "aten::stack");
  step.innermost.file = "/venv/lib/python3.11/site-packages/torch/utils/data/_utils/collate.py";
  odd(finding).lineage = {step, created(line(5, "Blobs.setup", "        self.data = Data(torch.randn(4))"))};
  find(odd(finding), EvidenceKind::first_bound_at, drawn, "x");
  CHECK(rule_of(finding) == "data_not_moved");
  CHECK(cause_line(explained(finding)) == 12);
}

TEST_CASE("A batch that is put together of what a helper makes one by one is moved as a whole") {
  Finding finding = add("ids");
  const Frame joined = line(32, "Worker.forward", "        ids = pad_sequence(tensors)", "pad_sequence(tensors)");
  finding.stack.push_back(line(34, "Worker.forward", "        return self.model(ids)"));
  finding.stack.push_back(line(37, "<module>", "worker.forward([worker.read(t) for t in texts])"));
  odd(finding).lineage = {
      with_op(derived(joined), "aten::pad_sequence"),
      called_by(created(line(29, "Worker.read", "        return torch.tensor(ids)", "torch.tensor(ids)")),
                {line(37, "<listcomp>", "worker.forward([worker.read(t) for t in texts])"),
                 line(37, "<module>", "worker.forward([worker.read(t) for t in texts])")})};
  CHECK(rule_of(finding) == "taken_from_maker");
  CHECK(cause_line(explained(finding)) == 32);
}

TEST_CASE("What a function makes of values that a line brings to the host for it goes back in that line") {
  Finding finding = add("groups");
  const Frame asked = line(25, "Net.group", "        groups = cluster(x.cpu().numpy())", "cluster(x.cpu().numpy())");
  odd(finding).lineage = {
      called_by(created(line(17, "cluster", "    return torch.tensor(pairs)", "torch.tensor(pairs)")), {asked})};
  CHECK(rule_of(finding) == "taken_from_maker");
  CHECK(cause_line(explained(finding)) == 25);
}

}  // namespace
}  // namespace devsan::report
