// Rules about devices that outlive what they were right for: remembered by a file, kept from another call, or left out
// where a function hands its own on.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

TEST_CASE("An object that was loaded with its device is told of where it is loaded") {
  Finding finding = add("batch");
  odd(finding).lineage = {created(line(14, "Replay.sample", "        return torch.zeros(4, device=self.device)",
                                       "torch.zeros(4, device=self.device)"))};
  CHECK(explained(finding).rule != "device_restored");
  const Evidence restored = {EvidenceKind::restored_at, line(40, "main", "    replay = pickle.load(file)"),
                             "replay.device"};
  odd(finding).evidence = {restored};
  const Finding told = explained(finding);
  CHECK(told.rule == "device_restored");
  CHECK(cause_line(told) == 40);
  CHECK(says(told, "model.py:14 puts `batch` on the CPU, which it remembers. What it meets is on cuda:0"));
  CHECK_THAT(told.fix->text, Contains("Set `replay.device` anew behind this line, to cuda:0"));

  SECTION("also where the other operand was made there") {
    odd(finding).evidence.clear();
    wanted(finding).evidence = {restored};
    CHECK(explained(finding).rule != "device_restored");
    wanted(finding).lineage = {created(line(14, "Replay.sample", "        return torch.zeros(4, device=d)"), "cuda:0")};
    CHECK(explained(finding).rule != "device_restored");
    // Somebody put that one where it is, so the other is the one that came to a wrong place.
    odd(finding).lineage = {moved(line(44, "main", "    batch = batch.to(d)", "batch.to(d)"), "cpu")};
    CHECK(explained(finding).root_cause->operand == "x");
  }
  SECTION("not where nobody knows what put it there") {
    odd(finding).lineage.clear();
    CHECK(explained(finding).rule != "device_restored");
  }
}

// `causal_mask(4)`, whose helper makes it on the default of its argument.
Finding not_given() {
  Finding finding = add("mask");
  odd(finding).lineage = {
      created(line(5, "causal_mask", "    return torch.ones(n, n, device=device)", "torch.ones(n, n, device=device)"))};
  find(odd(finding), EvidenceKind::device_not_given_at,
       line(27, "Net.forward", "        mask = causal_mask(4)", "causal_mask(4)"), "device=self.device");
  return finding;
}

TEST_CASE("A call that leaves out the device which its function knows is to hand it on") {
  Finding finding = not_given();
  const Finding told = explained(finding);
  CHECK(told.rule == "device_not_given");
  CHECK(cause_line(told) == 27);
  CHECK(says(told, "leaves `device` at its default"));
  CHECK_THAT(told.fix->text, Contains("`causal_mask(4, device=self.device)`"));

  SECTION("also where a helper that is told none leaves it as it was") {
    odd(finding).lineage.front().at = line(3, "main", "    mask = torch.ones(4)", "torch.ones(4)");
    CHECK(explained(finding).rule != "device_not_given");
    find(odd(finding), EvidenceKind::stayed_at, line(5, "transfer", "    return value.to(device)", "value.to(device)"));
    CHECK(explained(finding).rule == "device_not_given");
    CHECK(says(explained(finding), "model.py:5 leaves `mask` on the CPU: this call"));
  }
  SECTION("not where the helper names its device itself") {
    odd(finding).lineage.front().at =
        line(5, "causal_mask", "    return torch.ones(n, n, device='cpu')", "torch.ones(n, n, device='cpu')");
    CHECK(explained(finding).rule != "device_not_given");
  }
  SECTION("not a weight, which moves with its module") {
    odd(finding).is = NameKind::parameter;
    CHECK(explained(finding).rule != "device_not_given");
  }
}

// `self.slopes`, which `Bias.slopes_for` makes for longer rows only.
Finding guarded() {
  Finding finding = add("self.slopes", NameKind::attribute);
  odd(finding).lineage = {created(line(18, "Bias.slopes_for", "            self.slopes = torch.ones(n, device=device)",
                                       "torch.ones(n, device=device)"))};
  find(odd(finding), EvidenceKind::held_by_object, {}, "Bias.slopes");
  find(odd(finding), EvidenceKind::cache_guard_at, line(16, "Bias.slopes_for", "        if n > self.length:"),
       "self.length");
  return finding;
}

TEST_CASE("A condition that lets a kept value be used again has to look at the device") {
  Finding finding = guarded();
  const Finding told = explained(finding);
  CHECK(told.rule == "kept_from_first_call");
  CHECK(cause_line(told) == 16);
  CHECK(says(told, "was made in model.py:18 in an earlier call, on the CPU"));

  SECTION("also where a variable stands for the attribute") {
    odd(finding).name = "slopes";
    odd(finding).is = NameKind::local;
    odd(finding).evidence.front().kind = EvidenceKind::held_by_module;
    CHECK(cause_line(explained(finding)) == 16);
  }
  SECTION("not where nothing is known to keep it as one") {
    odd(finding).evidence.erase(odd(finding).evidence.begin());
    CHECK(cause_line(explained(finding)) == 18);
  }
  SECTION("not where no condition stands in between") {
    odd(finding).evidence.pop_back();
    CHECK(cause_line(explained(finding)) == 18);
  }
}

TEST_CASE("What a running function was given by the call that made it was kept by nobody") {
  Finding finding = add("batch[2]", NameKind::attribute);
  const Frame asks = line(40, "main", "    net(buffer.sample(8))", "buffer.sample(8)");
  odd(finding).lineage = {created(line(8, "Buffer.sample", "        return torch.as_tensor(x, device=self.device)",
                                       "torch.as_tensor(x, device=self.device)"))};
  odd(finding).lineage.front().calls = {asks};
  finding.stack.push_back(asks);
  CHECK(explained(finding).rule == "kept_from_first_call");

  SECTION("by its name") {
    find(odd(finding), EvidenceKind::given_at, asks, "buffer.sample(8)");
    CHECK(explained(finding).rule != "kept_from_first_call");
  }
  SECTION("or without one") {
    odd(finding).name = "args[2]";
    CHECK(explained(finding).rule != "kept_from_first_call");
  }
}

// `state`, kept from a call on cuda:1, meets `rows`, which the caller has just put on cuda:0.
Finding taken_for_other() {
  Finding finding = add("rows");
  const Frame call = line(60, "main", "    net(rows.to(device))", "rows.to(device)");
  odd(finding).device = "cuda:0";
  odd(finding).lineage = {moved(call, "cuda:0")};
  find(odd(finding), EvidenceKind::given_at, call, "rows.to(device)");
  finding.stack = {*finding.where, call};
  wanted(finding).name = "state";
  wanted(finding).device = "cuda:1";
  wanted(finding).lineage = {derived(line(12, "Net.fit", "        return x.mean(0)"), "cuda:1")};
  find(wanted(finding), EvidenceKind::bound_at, line(28, "Net.forward", "        state = self.states[k]"), "state");
  return finding;
}

TEST_CASE("What is kept from work on one accelerator is brought over where it is taken for work on another") {
  Finding finding = taken_for_other();
  const Finding told = explained(finding);
  CHECK(told.rule == "taken_for_other_device");
  CHECK(cause_line(told) == 28);
  CHECK(told.root_cause->operand == "state");
  CHECK(says(told, "model.py:60 has put `rows`"));
  CHECK_THAT(told.fix->text, Contains("`state = self.states[k].to(rows.device)`"));

  SECTION("also by get()") {
    wanted(finding).evidence.front().at.source = "        state = self.states.get(k)";
    CHECK(explained(finding).rule == "taken_for_other_device");
  }
  SECTION("also where it is the odd one, and a part of what is taken out") {
    wanted(finding).evidence.front().at.source = "        state, scale = self.states[k]";
    std::swap(finding.operands[0].odd, finding.operands[1].odd);
    const Finding turned = explained(finding);
    CHECK(turned.rule == "taken_for_other_device");
    CHECK(turned.root_cause->operand == "state");
  }
  SECTION("not what was computed anew") {
    wanted(finding).evidence.front().at.source = "        state = self.fit(k)";
    CHECK(explained(finding).rule != "taken_for_other_device");
  }
  SECTION("not where the caller has not moved the other one") {
    odd(finding).evidence.clear();
    CHECK(explained(finding).rule != "taken_for_other_device");
  }
  SECTION("not what is on the host") {
    wanted(finding).device = "cpu";
    CHECK(explained(finding).rule != "taken_for_other_device");
  }
}

TEST_CASE("A variable that says where a file is loaded to is the cause where it gets its value") {
  Finding finding = add("prior");
  odd(finding).lineage = {created(
      line(21, "load", "    return torch.load(path, map_location=where)", "torch.load(path, map_location=where)"))};
  CHECK(cause_line(explained(finding)) == 21);
  find(odd(finding), EvidenceKind::device_from, line(50, "main", "    where = torch.device('cpu')"), "where");
  const Finding told = explained(finding);
  CHECK(told.rule == "loaded_elsewhere");
  CHECK(cause_line(told) == 50);
  CHECK(says(told, "model.py:21 loads `prior` to the CPU, because of `where`"));
  odd(finding).evidence.front().at.source = "    where = pick(args)";
  CHECK(cause_line(explained(finding)) == 21);
}

TEST_CASE("What a method takes over from a file as an entry is moved there") {
  Finding finding = add("factor");
  odd(finding).lineage = {created(
      line(21, "main", "    state = torch.load(path, map_location='cpu')", "torch.load(path, map_location='cpu')"))};
  find(odd(finding), EvidenceKind::entry_put_at,
       line(33, "Shampoo.restore", "        self.factors[p] = list(state[p])"), "self.factors");
  CHECK(explained(finding).rule == "loaded_elsewhere");
  CHECK(cause_line(explained(finding)) == 33);
  odd(finding).evidence.front().at.function = "main";
  CHECK(cause_line(explained(finding)) == 21);
}

TEST_CASE("Of two accelerators, the one that a file was saved from is not what a program means") {
  Finding finding = add("x2");
  odd(finding).device = "cuda:1";
  odd(finding).lineage = {created(line(20, "main", "    x2 = torch.rand(4, device=d)"), "cuda:1")};
  wanted(finding).lineage = {created(line(21, "main", "    x = torch.load(path)", "torch.load(path)"), "cuda:0")};
  const Finding told = explained(finding);
  CHECK(told.rule == "loaded_elsewhere");
  CHECK(cause_line(told) == 21);
  CHECK_THAT(told.fix->text, Contains("`torch.load(path, map_location='cuda:1')`"));

  wanted(finding).lineage.front().at =
      line(21, "main", "    x = torch.load(path, map_location=d)", "torch.load(path, map_location=d)");
  CHECK(explained(finding).rule != "loaded_elsewhere");
}

TEST_CASE("State that a lambda makes is told of where its optimizer is kept") {
  Finding finding = add("state['sum']");
  odd(finding).lineage = {derived(line(50, "main.<locals>.<lambda>", "    trainer = Trainer(lambda p: Adagrad(p))"))};
  find(odd(finding), EvidenceKind::optimizer_state, {}, "sum");
  find(odd(finding), EvidenceKind::attribute_set_at, line(12, "Trainer.__init__", "        self.opt = make(params)"),
       "Trainer.opt");
  CHECK(explained(finding).rule == "optimizer_state_elsewhere");
  CHECK(cause_line(explained(finding)) == 12);
  odd(finding).lineage.front().at.function = "main";
  CHECK(cause_line(explained(finding)) == 50);
}

TEST_CASE("State that an optimizer computed before its weights moved is the optimizer's") {
  Finding finding = add("sums");
  odd(finding).lineage = {derived(line(50, "main", "    opt = Adagrad(net.parameters())"))};
  find(odd(finding), EvidenceKind::computed_before_move, line(50, "main", "    opt = Adagrad(net.parameters())"));
  find(odd(finding), EvidenceKind::source_moved_at, line(53, "main", "    net.cuda()"), "cuda:0");
  CHECK(explained(finding).rule == "computed_before_move");
  find(odd(finding), EvidenceKind::optimizer_state, {}, "sum");
  CHECK(explained(finding).rule == "optimizer_state_elsewhere");
}

TEST_CASE("load_state_dict() copies, and has no result that could be dropped or used instead") {
  Finding finding = add("state");
  odd(finding).lineage = {created(line(5, "load", "    state = torch.ones(4)", "torch.ones(4)"))};
  finding.stack.push_back(line(44, "main", "    step(state)", "step(state)"));
  const auto copied_by = [&](const char* call) {
    odd(finding).evidence = {{EvidenceKind::copied_away, line(40, "main", call, call), "cuda:0"}};
    return explained(finding).rule;
  };
  CHECK(copied_by("state.to('cuda')") == "to_result_dropped");
  CHECK(copied_by("other = state.to('cuda')") == "left_behind");
  CHECK(copied_by("opt.load_state_dict(state)") == "made_without_device");
  CHECK(copied_by("_ = opt.load_state_dict(state)") == "made_without_device");
  finding.stack.pop_back();  // what a function that has returned copied for itself is gone
  CHECK(copied_by("other = state.to('cuda')") == "made_without_device");
}

TEST_CASE("An array that becomes a tensor does not follow the default device") {
  Finding finding = add("rows");
  odd(finding).lineage = {created(line(44, "main", "    rows = torch.from_numpy(array)", "torch.from_numpy(array)"))};
  wanted(finding).lineage = {created(line(45, "main", "    x = torch.ones(4)", "torch.ones(4)"), "cuda:0")};
  find(wanted(finding), EvidenceKind::default_device_block_at, line(43, "main", "    with torch.device('cuda'):"));
  const Finding told = explained(finding);
  CHECK(told.rule == "numpy_round_trip");
  CHECK(says(told, "cuda:0 as model.py:43 says, is for factories alone"));

  wanted(finding).evidence.front().at.function = "build";
  CHECK_FALSE(says(explained(finding), "for factories alone"));
  odd(finding).lineage.front().at.function = "build";  // which has the block, too
  CHECK(says(explained(finding), "for factories alone"));
  wanted(finding).lineage.front().at = line(45, "main", "    x = torch.ones(4, device=d)", "torch.ones(4, device=d)");
  CHECK_FALSE(says(explained(finding), "for factories alone"));
}

}  // namespace
}  // namespace devsan::report
