// Rules about what is taken over as it is: by a generator's attribute, a loop's list, a batch made by hand, a file.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

Finding with_generator(const char* name) {
  Finding finding = add(name, NameKind::attribute);
  odd(finding).generator = true;
  return finding;
}

TEST_CASE("A generator that an attribute was given is told of where it is made") {
  Finding finding = with_generator("self.rng");
  find(odd(finding), EvidenceKind::attribute_set_at, line(13, "Backend.seed", "        self.rng = seed"),
       "Backend.rng");
  CHECK(cause_line(explained(finding)) == 13);
  find(odd(finding), EvidenceKind::generator_made_at, line(18, "main", "    gen = torch.Generator()"), "");
  CHECK(cause_line(explained(finding)) == 18);
  odd(finding).evidence.front().at.source = "        self.rng = make(seed)";
  CHECK(cause_line(explained(finding)) == 13);
}

TEST_CASE("A generator that was made for the first who asked is kept by a condition that asks too little") {
  Finding finding = with_generator("rng");
  find(odd(finding), EvidenceKind::generator_made_at, line(14, "seed", "        rng = torch.Generator(device=device)"),
       "");
  CHECK(cause_line(explained(finding)) == 14);
  find(odd(finding), EvidenceKind::cache_guard_at, line(13, "seed", "    if rng is None:"), "if rng is None:");
  const Finding told = explained(finding);
  CHECK(told.rule == "generator_elsewhere");
  CHECK(cause_line(told) == 13);
  CHECK_THAT(told.fix->text, Contains("`or rng.device != …`"));
}

TEST_CASE("A list that a method takes over from what was saved is told of there, and not in the loop") {
  Finding finding = add("b");
  odd(finding).lineage = {created(line(27, "main", "    opt.load({'buckets': [torch.zeros(3)]})", "torch.zeros(3)"))};
  find(odd(finding), EvidenceKind::bound_at, line(22, "Net.forward", "        for p, b in zip(ps, self.buckets):"),
       "b");
  CHECK(cause_line(explained(finding)) != 19);
  find(odd(finding), EvidenceKind::list_stored_at, line(19, "Sgd.load", "        self.buckets = state['buckets']"),
       "Sgd.buckets");
  const Finding told = explained(finding);
  CHECK(told.rule == "taken_from_elsewhere");
  CHECK(cause_line(told) == 19);
  odd(finding).evidence.back().at.source = "        self.buckets = build(state)";
  CHECK(cause_line(explained(finding)) != 19);
}

TEST_CASE("A batch that is collated by hand is moved behind that line") {
  Finding finding = add("batch['image']", NameKind::attribute);
  LineageStep made = derived(line(23, "main", "    batch = default_collate([data[0]])", "default_collate([data[0]])"));
  made.innermost = library_line(90, "collate_tensor_fn", "    return torch.stack(batch, 0)");
  made.innermost.file = "/srv/.venv/lib/python3.11/site-packages/torch/utils/data/_utils/collate.py";
  odd(finding).lineage = {made, created(line(21, "main", "    data = [{'image': torch.randn(2)}]", "torch.randn(2)"))};
  const Finding told = explained(finding);
  CHECK(told.rule == "data_not_moved");
  CHECK(cause_line(told) == 23);
  odd(finding).lineage.front().innermost = odd(finding).lineage.front().at;
  CHECK(cause_line(explained(finding)) != 23);
}

TEST_CASE("A loop over what is written in its head goes through no data") {
  Finding finding = add("split.images", NameKind::attribute);
  odd(finding).lineage = {created(line(13, "Views.__init__", "        self.images = torch.rand(4)", "torch.rand(4)"))};
  find(odd(finding), EvidenceKind::drawn_within_at, line(20, "main", "    for split in loaders:"), "split");
  CHECK(rule_of(finding) == "data_not_moved");
  odd(finding).evidence.front().at.source = "    for split in (train, val):";
  CHECK(rule_of(finding) != "data_not_moved");
}

TEST_CASE("Beside the entries of a model that nothing moved, what a file put on a GPU is the mistake") {
  Finding finding = add("old['weight']", NameKind::attribute);
  odd(finding).lineage = {created(line(15, "main", "    net = Linear(3, 3)", "Linear(3, 3)"))};
  wanted(finding).name = "new['weight']";
  wanted(finding).lineage = {moved(line(16, "main", "    new = torch.load(path)", "torch.load(path)"), "cuda:0")};
  CHECK(cause_line(explained(finding)) == 15);
  find(odd(finding), EvidenceKind::module_bound_at, line(15, "main", "    net = Linear(3, 3)"), "net");
  const Finding told = explained(finding);
  CHECK(told.rule == "loaded_elsewhere");
  CHECK(cause_line(told) == 16);
  CHECK_THAT(told.fix->text, Contains("map_location='cpu'"));
}

TEST_CASE("Entries that one line of a loop computed are brought together where it puts them") {
  Finding finding = add("");
  const Frame computed = line(21, "collect", "        preds.append(net(x).softmax(1))", "net(x).softmax(1)");
  odd(finding).arg = "tensors[1]";
  wanted(finding).arg = "tensors[0]";
  wanted(finding).name = "";
  odd(finding).lineage = {derived(computed), created(line(16, "main", "    nets = [build(), build()]", "build()"))};
  wanted(finding).lineage = {derived(computed, "cuda:0")};
  const Finding told = explained(finding);
  CHECK(told.rule == "gathered_from_devices");
  CHECK(cause_line(told) == 21);

  SECTION("or where another line puts them") {
    const Frame alone = line(20, "collect", "        norm = net(x).norm()", "net(x).norm()");
    odd(finding).lineage.front().at = alone;
    wanted(finding).lineage.front().at = alone;
    CHECK(rule_of(finding) != "gathered_from_devices");
    find(wanted(finding), EvidenceKind::entry_put_at, line(22, "collect", "        norms.append(norm)"), "norms");
    CHECK(cause_line(explained(finding)) == 22);
  }
  SECTION("not where two lines computed them") {
    wanted(finding).lineage.front().at.line = 19;
    CHECK(rule_of(finding) != "gathered_from_devices");
  }
}

TEST_CASE("An index that a caller takes from beside what it brings to the host is told of there") {
  Finding finding = add("rows");
  odd(finding).lineage = {moved(line(15, "main", "    rows = s['rows'].cpu()", "s['rows'].cpu()"), "cpu")};
  wanted(finding).name = "mask";
  wanted(finding).arg = "indices[0]";
  find(wanted(finding), EvidenceKind::bound_at, line(16, "main", "    mask = s['mask']"), "mask");
  const Finding told = explained(finding);
  CHECK(told.rule == "index_not_brought");
  CHECK(cause_line(told) == 16);
  wanted(finding).evidence.front().at = line(16, "other", "    mask = s['mask']");
  CHECK(rule_of(finding) != "index_not_brought");
}

TEST_CASE("A Parameter that is moved where it is made is told of as no parameter, whoever says the device") {
  Finding finding = add("self.gate", NameKind::attribute);
  odd(finding).device = "cuda:1";
  const Frame made = line(18, "Moe.__init__", "        self.gate = nn.Parameter(torch.zeros(4)).to(device)",
                          "nn.Parameter(torch.zeros(4)).to(device)");
  odd(finding).lineage = {moved(made, "cuda:1"), created(made)};
  find(odd(finding), EvidenceKind::held_by_module, {}, "Moe.gate");
  find(odd(finding), EvidenceKind::attribute_set_at, made, "Moe.gate");
  find(odd(finding), EvidenceKind::device_from, line(24, "main", "    moe = Moe('cuda:1')", "Moe('cuda:1')"), "device");
  const Finding told = explained(finding);
  CHECK(told.rule == "attribute_not_buffer");
  CHECK(cause_line(told) == 18);
  CHECK(says(told, "returns a plain tensor"));
}

TEST_CASE("In a forward, an attribute that says a device is asked in vain") {
  Finding finding = add("out");
  const Frame made = line(20, "Wave.forward", "        out = torch.zeros(4, device=self.device)",
                          "torch.zeros(4, device=self.device)");
  odd(finding).lineage = {created(made)};
  find(odd(finding), EvidenceKind::device_from, line(16, "Wave.__init__", "        self.device = device"),
       "self.device");
  wanted(finding).is = NameKind::parameter;
  wanted(finding).lineage = {by_module(moved(line(24, "main", "    net = Net().to(dev)", "Net().to(dev)"), "cuda:0"))};
  CHECK(cause_line(explained(finding)) == 20);
  odd(finding).lineage.front().at.function = "Wave.sample";
  CHECK(cause_line(explained(finding)) == 16);
}

}  // namespace
}  // namespace devsan::report
