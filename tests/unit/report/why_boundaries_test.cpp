// Which of the lines between the making of a value and its use is told: where it is taken over, prepared, or put beside
// others; and where a helper only does as it is told.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

TEST_CASE("A function that does nothing but move what it is given has done as its caller wanted") {
  Finding finding = add("image");
  const Frame call = line(21, "Aug.forward", "        kept[0] = self.to_host(images[0])", "self.to_host(images[0])");
  const Frame mover = line(12, "Aug.to_host", "        return image.detach().cpu()", "image.detach().cpu()");
  odd(finding).lineage = {called_by(moved(mover, "cpu"), {call}),
                          created(line(5, "main", "    a = rand(3)"), "cuda:0")};
  CHECK(explained(finding).rule == "moved_away");
  CHECK(cause_line(explained(finding)) == 21);
  CHECK(says(explained(finding), "`Aug.to_host`, in model.py:12, does nothing else"));

  SECTION("not one that computes what it moves") {
    odd(finding).lineage.insert(odd(finding).lineage.begin() + 1,
                                derived(line(11, "Aug.to_host", "        image = image * 2"), "cuda:0"));
    CHECK(cause_line(explained(finding)) == 12);
  }
  SECTION("not where nobody can be asked to change the call") {
    odd(finding).lineage.front().calls = {library_line(99, "collate", "    return fetch(x)")};
    CHECK(cause_line(explained(finding)) == 12);
  }
}

TEST_CASE("What one method sends away is missed where another one should have brought it back") {
  Finding finding = add("keys");
  const Frame sent = line(43, "Cache.update", "        layer.move('cpu')", "layer.move('cpu')");
  const Frame move = line(20, "Layer.move", "        self.keys = self.keys.to(device)", "self.keys.to(device)");
  odd(finding).lineage = {called_by(moved(move, "cpu"), {sent}), created(line(5, "main", "    a = f()"), "cuda:0")};
  find(odd(finding), EvidenceKind::device_from, sent, "device");
  CHECK(cause_line(explained(finding)) == 43);
  find(odd(finding), EvidenceKind::brought_back_at,
       line(38, "Cache.prefetch", "        layer.move(self.device)", "layer.move(self.device)"), "move");
  CHECK(explained(finding).rule == "moved_away");
  CHECK(cause_line(explained(finding)) == 38);
}

TEST_CASE("Two devices part in the function that both come through") {
  Finding finding = add("weight", NameKind::parameter);
  const Frame bare = line(41, "load", "    vad = load_vad(torch.device(device))", "load_vad(torch.device(device))");
  wanted(finding).device = "cuda:1";
  odd(finding).device = "cuda:0";
  wanted(finding).lineage = {
      moved(line(33, "Pipe.run", "        x = x.to(self.device)", "x.to(self.device)"), "cuda:1"),
      created(line(2, "main", "    x = f()"))};
  odd(finding).lineage = {moved(line(26, "load_vad", "    return Vad().to(device)", "Vad().to(device)"), "cuda:0"),
                          created(line(12, "Vad.__init__", "        self.w = p()"))};
  find(odd(finding), EvidenceKind::device_from, bare, "device");
  find(odd(finding), EvidenceKind::device_from,
       line(44, "<module>", "pipe = load('cuda', index=1)", "load('cuda', index=1)"), "device");
  find(wanted(finding), EvidenceKind::device_from, line(42, "load", "    return Pipe(vad, place)", "Pipe(vad, place)"),
       "device");
  CHECK(explained(finding).rule == "current_device");
  CHECK(cause_line(explained(finding)) == 41);

  SECTION("else where the device was said without a number") {
    wanted(finding).evidence.clear();
    CHECK(cause_line(explained(finding)) == 44);
  }
}

TEST_CASE("A helper that moves what it is given leaves it where its caller says") {
  Finding finding = add("ids");
  odd(finding).lineage = {created(line(9, "collate", "    ids = torch.tensor(rows)", "torch.tensor(rows)"))};
  find(odd(finding), EvidenceKind::stayed_at, line(14, "to_device", "    return ids.to(device)", "ids.to(device)"));
  const Frame told = line(22, "Trainer.chunk", "        return to_device(batch, self.model.device)",
                          "to_device(batch, self.model.device)");
  find(odd(finding), EvidenceKind::stay_from, told, "device");
  CHECK(explained(finding).rule == "move_did_nothing");
  CHECK(cause_line(explained(finding)) == 22);
}

TEST_CASE("What nothing on its way knows a device for is to be moved where it is prepared") {
  Finding finding = add("mask");
  const Frame made = line(8, "Aug.draw", "        p = torch.full((n,), 0.5)", "torch.full((n,), 0.5)");
  odd(finding).lineage = {created(made)};
  find(odd(finding), EvidenceKind::made_unaware_at, made, "Aug.draw");
  find(odd(finding), EvidenceKind::bound_at, line(29, "Net.forward", "        mask = chosen.view(-1, 1)"), "mask");
  CHECK(explained(finding).rule == "taken_from_maker");
  CHECK(cause_line(explained(finding)) == 29);

  SECTION("not where the line only takes it out") {
    odd(finding).evidence.back().at = line(29, "Net.forward", "        mask = given");
    CHECK(cause_line(explained(finding)) == 8);
  }
  SECTION("not where somebody was asked for a device") {
    find(odd(finding), EvidenceKind::device_from, line(28, "Net.forward", "        m = draw(lengths)"), "lengths");
    CHECK(explained(finding).rule != "taken_from_maker");
  }
}

TEST_CASE("A part of one tensor is to be moved where it is taken out") {
  Finding finding = add("states");
  odd(finding).device = "cuda:1";
  odd(finding).lineage = {created(line(11, "Cache.__init__", "        self.states = torch.zeros(n, 4, device=device)",
                                       "torch.zeros(n, 4, device=device)"),
                                  "cuda:1")};
  find(odd(finding), EvidenceKind::device_from,
       line(19, "generate", "    cache = Cache(4, ids.device)", "Cache(4, ids.device)"), "device");
  find(odd(finding), EvidenceKind::bound_at, line(29, "Net.forward", "        states = cache.states[self.layer]"),
       "states");
  CHECK(explained(finding).rule == "made_without_device");
  CHECK(cause_line(explained(finding)) == 29);

  SECTION("an entry of a list could be made on a device of its own") {
    find(odd(finding), EvidenceKind::held_by_object, {}, "Cache.states[0]");
    CHECK(cause_line(explained(finding)) == 11);
  }
}

TEST_CASE("A default that names a device goes before the move that follows it") {
  Finding finding = add("rotation");
  odd(finding).lineage = {created(line(11, "as_batch", "    v = torch.as_tensor(x).to(device)", "torch.as_tensor(x)"))};
  find(odd(finding), EvidenceKind::device_from,
       line(29, "Net.forward", "        rotation = look_at(eye)", "look_at(eye)"), "device='cpu'");
  CHECK(cause_line(explained(finding)) == 29);
}

TEST_CASE("What is joined of entries from before a move is to be moved where it is joined") {
  Finding finding = add("t");
  const Frame made = line(24, "Memory.reset", "        i = self.last.new_empty(0)", "self.last.new_empty(0)");
  LineageStep join = derived(line(29, "Net.forward", "        t = torch.cat(kept)", "torch.cat(kept)"));
  join.op = "aten::cat";
  odd(finding).lineage = {join, derived(made), created(line(9, "Memory.__init__", "        self.last = zeros(3)"))};
  find(odd(finding), EvidenceKind::computed_before_move, made, "self.last");
  find(odd(finding), EvidenceKind::source_moved_at, line(44, "<module>", "net = Net().to(dev)"), "cuda:0");
  CHECK(explained(finding).rule == "computed_before_move");
  CHECK(cause_line(explained(finding)) == 29);

  SECTION("not what is computed of one of them") {
    odd(finding).lineage.front().op = "aten::mul.Tensor";
    CHECK(cause_line(explained(finding)) == 24);
  }
}

TEST_CASE("An entry of the script's data is to be moved where a function hands it on") {
  Finding finding = add("batch");
  odd(finding).lineage = {created(line(41, "<module>", "data = {'index': torch.tensor([0])}", "torch.tensor([0])"))};
  find(odd(finding), EvidenceKind::given_at, line(36, "test", "    z = model(data['index'])", "model(data['index'])"),
       "data['index']");
  CHECK(explained(finding).rule == "taken_from_elsewhere");
  CHECK(cause_line(explained(finding)) == 36);

  SECTION("not where the script hands it on itself") {
    odd(finding).evidence.back().at = line(45, "<module>", "model(data['index'])", "model(data['index'])");
    CHECK(cause_line(explained(finding)) == 41);
  }
}

TEST_CASE("What is put beside something that is moved is to be moved there") {
  Finding finding = add("noise");
  const Frame put = line(22, "Aug.draw", "        self.params['noise'] = clips[start:]");
  odd(finding).lineage = {created(line(15, "Aug.read", "        clip = torch.from_numpy(a)", "torch.from_numpy(a)"))};
  find(odd(finding), EvidenceKind::sibling_moved, line(21, "Aug.draw", "        self.params['snr'] = snr.to(x.device)"),
       "['snr']");
  CHECK(cause_line(explained(finding)) == 21);
  find(odd(finding), EvidenceKind::entry_put_at, put, "self.params");
  CHECK(explained(finding).rule == "left_out_of_move");
  CHECK(cause_line(explained(finding)) == 22);
}

TEST_CASE("What an earlier call has put away with the device of then is told of where it was put") {
  Finding finding = add("grid");
  const Frame put =
      line(25, "Net.forward", "        self.grid[i] = self.make(n).to(f.device)", "self.make(n).to(f.device)");
  odd(finding).lineage = {created(line(17, "Net.make", "        return torch.arange(n)", "torch.arange(n)"))};
  find(odd(finding), EvidenceKind::held_by_module, {}, "Net.grid[0]");
  find(odd(finding), EvidenceKind::attribute_set_at, line(13, "Net.__init__", "        self.grid = [torch.zeros(1)]"),
       "Net.grid");
  find(odd(finding), EvidenceKind::entry_put_at, put, "self.grid");
  find(odd(finding), EvidenceKind::stayed_at, put);
  CHECK(explained(finding).rule == "kept_from_first_call");
  CHECK(cause_line(explained(finding)) == 25);
}

TEST_CASE("What joins a dictionary whose tensors had all been moved was put there too late") {
  Finding finding = add("g");
  const Frame moves = line(14, "to_device.<locals>.<dictcomp>",
                           "    return {k: v.to(d) if torch.is_tensor(v) else v for k, v in batch.items()}");
  odd(finding).lineage = {
      created(line(22, "Tts.format", "        batch['ids'] = torch.tensor(ids)", "torch.tensor(ids)"))};
  find(odd(finding), EvidenceKind::sibling_moved, moves, "['text']");
  CHECK(explained(finding).rule == "left_out_of_move");
  CHECK(cause_line(explained(finding)) == 22);

  SECTION("not where the line chooses what it moves") {
    odd(finding).evidence.back().at.source = "    return {k: v.to(d) if k in names else v for k, v in batch.items()}";
    CHECK(cause_line(explained(finding)) == 14);
  }
}

TEST_CASE("The failing line brings one operand to the host on purpose, and the other was moved from there") {
  Finding finding = add("steps");
  finding.where =
      line(30, "threshold", "    a = table.index_select(0, steps.cpu())", "table.index_select(0, steps.cpu())");
  finding.stack = {*finding.where};
  odd(finding).lineage = {moved(line(30, "threshold", finding.where->source, "steps.cpu()"), "cpu"),
                          created(line(3, "main", "    steps = f()"), "cuda:0")};
  wanted(finding).name = "table";
  const Frame takes =
      line(19, "Scheduler.noise", "        self.table = self.table.to(x.device)", "self.table.to(x.device)");
  wanted(finding).lineage = {moved(takes, "cuda:0"),
                             created(line(16, "Scheduler.__init__", "        self.table = f()"))};
  CHECK(explained(finding).rule == "moved_away");
  CHECK(cause_line(explained(finding)) == 19);

  SECTION("not where that has always been there") {
    wanted(finding).lineage = {created(line(16, "Scheduler.__init__", "        self.table = f()"), "cuda:0")};
    CHECK(cause_line(explained(finding)) == 30);
  }
}

TEST_CASE("A loop over what a helper makes and returns is not to move that") {
  Finding finding = add("color");
  const Frame made =
      line(20, "parse.<locals>.<listcomp>", "    return [torch.tensor(c) for c in colors]", "torch.tensor(c)");
  const Frame loop = line(28, "Net.forward", "        for mask, color in zip(masks, parse(colors)):");
  odd(finding).lineage = {called_by(created(made), {line(20, "parse", made.source), loop})};
  find(odd(finding), EvidenceKind::bound_at, loop, "color");
  CHECK(explained(finding).rule == "made_without_device");
  CHECK(cause_line(explained(finding)) == 20);
}

TEST_CASE("A function that computes with weights is called above the line that moves them") {
  Finding finding = add("self.mean");
  const Frame made = line(11, "Trainer.remember", "        self.mean = self.net.weight * 2");
  odd(finding).lineage = {derived(made), created(line(4, "Net.__init__", "        self.fc = nn.Linear(4, 4)"))};
  find(odd(finding), EvidenceKind::computed_before_move, made, "self.net.weight");
  find(odd(finding), EvidenceKind::source_moved_at, line(19, "Trainer.fit", "        self.net.to(dev)"), "cuda:0");
  CHECK(cause_line(explained(finding)) == 11);
  find(odd(finding), EvidenceKind::called_before_move_at, line(18, "Trainer.fit", "        self.remember()"),
       "remember");
  CHECK(explained(finding).rule == "computed_before_move");
  CHECK(cause_line(explained(finding)) == 18);

  SECTION("not in a script, whose author may change either") {
    odd(finding).evidence.back().at.function = "<module>";
    CHECK(cause_line(explained(finding)) == 11);
  }
}

TEST_CASE("A factory without a device meets what was moved to the device that the function is told") {
  Finding finding = add("waveform");
  const Frame made = line(18, "Mel.bank", "        waveform = torch.from_numpy(raw).to(device, torch.float32)",
                          "torch.from_numpy(raw)");
  const Frame window = line(19, "Mel.bank", "        window = torch.hann_window(64)", "torch.hann_window(64)");
  odd(finding).lineage = {created(made)};
  wanted(finding).lineage = {created(window, "cuda:0")};
  find(odd(finding), EvidenceKind::device_from, line(36, "<module>", "mel(clips)", "mel(clips)"), "device='cpu'");
  CHECK(explained(finding).rule == "device_not_taken");
  CHECK(cause_line(explained(finding)) == 19);
}

TEST_CASE("What a helper without a device makes is to be moved where a call hands it straight on") {
  Finding finding = add("ids");
  const Frame made =
      line(26, "encode", "    return torch.tensor([ord(c) for c in text])", "torch.tensor([ord(c) for c in text])");
  const Frame call = line(43, "<module>", "    ids=encode('text'),", "encode('text')");
  finding.stack.push_back(line(41, "<module>", "tokens = generate("));
  odd(finding).lineage = {called_by(created(made), {call})};
  find(odd(finding), EvidenceKind::made_unaware_at, made, "encode");
  CHECK(explained(finding).rule == "taken_from_maker");
  CHECK(cause_line(explained(finding)) == 43);

  SECTION("not where a variable gets it") {
    odd(finding).lineage.front().calls.front().source = "ids = encode('text')";
    CHECK(cause_line(explained(finding)) == 26);
  }
}

TEST_CASE("What an object has computed for itself has not come with what its move takes along") {
  Finding finding = add("self.mean");
  const Frame made = line(17, "Strategy.mean", "        self.mean = solve(self.covar, self.targets)");
  odd(finding).lineage = {derived(made), created(line(3, "main", "    x = f()"))};
  find(odd(finding), EvidenceKind::held_by_object, {}, "Strategy.mean");
  find(odd(finding), EvidenceKind::attribute_set_at, made, "Strategy.mean");
  find(odd(finding), EvidenceKind::sibling_moved, line(29, "Model._apply", "        s.targets = fn(s.targets)"),
       ".targets");
  CHECK(explained(finding).rule != "left_out_of_move");
  odd(finding).evidence[1].at.function = "Strategy.__init__";
  CHECK(explained(finding).rule == "left_out_of_move");
}

}  // namespace
}  // namespace devsan::report
