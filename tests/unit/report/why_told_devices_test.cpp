// Rules about devices that a function is told: two of them, one that it does not use, one that it leaves out.
#include <catch2/catch.hpp>

#include "why_program.h"

namespace devsan::report {
namespace {

using namespace why_program;

// `best` begins on `result_device`, which the caller of `Net.forward` gives beside `device`.
Finding two_devices() {
  Finding finding = add("best");
  odd(finding).lineage = {created(line(22, "Net.forward", "        best = torch.zeros(4, device=result_device)",
                                       "torch.zeros(4, device=result_device)"))};
  const char* call = "net(q, rows, device='cuda:0', result_device='cpu')";
  find(odd(finding), EvidenceKind::device_from, line(60, "main", call, call), "result_device");
  return finding;
}

TEST_CASE("What a function makes on the other of two devices that it is told is made on the wrong one") {
  Finding finding = two_devices();
  const Finding told = explained(finding);
  CHECK(told.rule == "told_two_devices");
  CHECK(cause_line(told) == 22);
  CHECK_THAT(told.root_cause->why, Contains("puts `best` on `result_device`, which is the CPU") &&
                                       Contains("model.py:60 gives `device` as well"));
  CHECK_THAT(told.fix->text, Contains("Take `device` here") && Contains("`best.to(x.device)`"));

  SECTION("not where it is told one alone") {
    const char* call = "net(q, rows, count=4, result_device='cpu')";
    odd(finding).evidence.front().at = line(60, "main", call, call);
    CHECK(explained(finding).rule != "told_two_devices");
  }
  SECTION("not where both are the same") {
    const char* call = "net(q, rows, device='cpu', result_device='cpu')";
    odd(finding).evidence.front().at = line(60, "main", call, call);
    CHECK(explained(finding).rule != "told_two_devices");
  }
  SECTION("not what another function made of them") {
    odd(finding).lineage.front().at.function = "Net.prepare";
    CHECK(explained(finding).rule != "told_two_devices");
  }
}

TEST_CASE("A move to the other of two devices, where the value was already, is told like one that does something") {
  Finding finding = two_devices();
  odd(finding).lineage = {created(line(50, "load", "    rows = torch.randn(4)", "torch.randn(4)"))};
  odd(finding).evidence.front().kind = EvidenceKind::stay_from;
  const Frame asked = line(23, "Net.forward", "        best = rows.to(result_device)", "rows.to(result_device)");
  CHECK(explained(finding).rule != "told_two_devices");
  find(odd(finding), EvidenceKind::stayed_at, asked);
  const Finding told = explained(finding);
  CHECK(told.rule == "told_two_devices");
  CHECK(cause_line(told) == 23);
}

TEST_CASE("An argument of the failing function may say the other device, whatever its caller's text") {
  Finding finding = two_devices();
  odd(finding).evidence.front().at = line(60, "main", "net(q, rows, **options)", "net(q, rows, **options)");
  CHECK(explained(finding).rule != "told_two_devices");
  find(odd(finding), EvidenceKind::told_beside_at, line(20, "Net.forward", "    def forward(self, q, rows, **k):"),
       "work_device");
  const Finding told = explained(finding);
  CHECK(told.rule == "told_two_devices");
  CHECK(cause_line(told) == 22);
  CHECK_THAT(told.fix->text, Contains("Take `work_device` here"));

  SECTION("not where the line has asked for that one") {
    odd(finding).lineage.front().at.source = "        best = torch.zeros(4, device=pick(work_device))";
    CHECK(explained(finding).rule != "told_two_devices");
  }
}

// `levels` and `noise` of one constructor, which is told the CPU.
Finding not_taken() {
  Finding finding = add("self.levels", NameKind::attribute);
  odd(finding).lineage = {created(line(12, "Sampler.__init__", "        self.levels = torch.ones(4, device=device)",
                                       "torch.ones(4, device=device)"))};
  wanted(finding).name = "self.noise";
  wanted(finding).lineage = {
      created(line(13, "Sampler.__init__", "        self.noise = torch.zeros(4, device=\"cuda\")",
                   "torch.zeros(4, device=\"cuda\")"),
              "cuda:0")};
  find(odd(finding), EvidenceKind::device_from, line(60, "main", "Sampler(device='cpu')", "Sampler(device='cpu')"),
       "device");
  return finding;
}

TEST_CASE("The one tensor that is not made on the device which its function is told is the mistake") {
  Finding finding = not_taken();
  const Finding told = explained(finding);
  CHECK(told.rule == "device_not_taken");
  CHECK(cause_line(told) == 13);
  CHECK(told.root_cause->operand == "self.noise");
  CHECK_THAT(told.root_cause->why, Contains("is told to work on `device`, the CPU") && Contains("model.py:12") &&
                                       Contains("on `\"cuda\"`, which is cuda:0"));
  CHECK_THAT(told.fix->text, Contains("`torch.zeros(4, device=device)`"));

  SECTION("also where the attribute of that name says it, and where the call leaves it at its default") {
    odd(finding).lineage.front().at =
        line(12, "Sampler.__init__", "        self.levels = torch.ones(4, device=self.device)",
             "torch.ones(4, device=self.device)");
    odd(finding).evidence.front() = {EvidenceKind::device_from, line(60, "main", "Sampler()", "Sampler()"),
                                     "device='cpu'"};
    CHECK(explained(finding).rule == "device_not_taken");
  }
  SECTION("not where another function made it") {
    wanted(finding).lineage.front().at.function = "Sampler.reset";
    CHECK(explained(finding).rule != "device_not_taken");
  }
  SECTION("not where it was made elsewhere and brought there") {
    wanted(finding).lineage.push_back(created(line(4, "load", "    return torch.rand(4)", "torch.rand(4)")));
    wanted(finding).lineage.front().how = trace::How::moved;
    CHECK(explained(finding).rule != "device_not_taken");
  }
  SECTION("not where the caller hands on what it was told, and what is beside it follows another variable") {
    odd(finding).evidence.front().at = line(60, "main", "Sampler(device=args.device)", "Sampler(device=args.device)");
    wanted(finding).lineage.front().at =
        line(13, "Sampler.__init__", "        self.noise = torch.zeros(4, device=home)", "torch.zeros(4, device=home)");
    CHECK(explained(finding).rule != "device_not_taken");
  }
  SECTION("not where the argument is a tensor by its name") {
    odd(finding).lineage.front().at =
        line(12, "Sampler.__init__", "        self.levels = torch.ones(4, device=like)", "torch.ones(4, device=like)");
    odd(finding).evidence.front() = {EvidenceKind::device_from,
                                     line(60, "main", "Sampler(like='cpu')", "Sampler(like='cpu')"), "like"};
    CHECK(explained(finding).rule != "device_not_taken");
  }
  SECTION("not where both take the argument") {
    const char* call = "torch.zeros(4, device=device)";
    wanted(finding).lineage.front().at =
        line(13, "Sampler.__init__", "        self.noise = torch.zeros(4, device=device)", call);
    CHECK(explained(finding).rule != "device_not_taken");
  }
}

TEST_CASE("What is made without a device beside what is made as told follows a default that somebody has set") {
  Finding finding = not_taken();
  const Frame made = line(13, "Sampler.__init__", "        self.noise = torch.zeros(4)", "torch.zeros(4)");
  wanted(finding).lineage = {created(made, "cuda:0")};
  const Finding told = explained(finding);
  CHECK(told.rule == "device_not_taken");
  CHECK(cause_line(told) == 13);
  CHECK_THAT(told.root_cause->why, Contains("the default device of that moment, cuda:0"));
  CHECK_THAT(told.fix->text, Contains("`torch.zeros(4, device=device)`"));

  SECTION("not what is made like another tensor") {
    wanted(finding).lineage.front().at =
        line(13, "Sampler.__init__", "        self.noise = torch.zeros_like(x)", "torch.zeros_like(x)");
    CHECK(explained(finding).rule != "device_not_taken");
  }
  SECTION("not what meets a weight where it is made") {
    finding.where->function = "Sampler.__init__";
    finding.stack = {*finding.where};
    CHECK(explained(finding).rule == "device_not_taken");
    odd(finding).is = NameKind::parameter;
    CHECK(explained(finding).rule != "device_not_taken");
  }
  SECTION("not what lies on the CPU, where factories make it by themselves") {
    odd(finding).device = odd(finding).lineage.front().device = "cuda:0";
    odd(finding).evidence.front().at = line(60, "main", "Sampler(device='cuda')", "Sampler(device='cuda')");
    wanted(finding).device = wanted(finding).lineage.front().device = "cpu";
    CHECK(explained(finding).rule != "device_not_taken");
  }
}

TEST_CASE("A function that is given a device and does not use it is the cause where it makes what it returns") {
  Finding finding = add("inputs");
  odd(finding).lineage = {created(line(8, "as_tensors", "    batch = torch.tensor(rows)", "torch.tensor(rows)"))};
  find(odd(finding), EvidenceKind::device_unused_at, line(8, "as_tensors", "    batch = torch.tensor(rows)"), "device");
  const Finding told = explained(finding);
  CHECK(told.rule == "device_argument_unused");
  CHECK(cause_line(told) == 8);
  CHECK_THAT(told.root_cause->why, Contains("comes from `as_tensors`, which takes `device` and never uses it"));
  CHECK_THAT(told.fix->text, Contains("`.to(device)`"));

  SECTION("not where it was moved since") {
    odd(finding).lineage.insert(odd(finding).lineage.begin(),
                                moved(line(40, "main", "    inputs = inputs.cpu()", "inputs.cpu()"), "cpu"));
    CHECK(explained(finding).rule != "device_argument_unused");
  }
  SECTION("not where it is a library's, in a program that is none") {
    odd(finding).evidence.front().at = library_line(8, "as_tensors", "    batch = torch.tensor(rows)");
    CHECK(explained(finding).rule != "device_argument_unused");
  }
}

// `spread(labels)` makes its rows on "cuda", by default, and is given labels on the CPU.
Finding given_from_host() {
  Finding finding = add("labels");
  wanted(finding).lineage = {
      created(line(26, "Net.forward", "        rows = torch.zeros(4, device=device)", "torch.zeros(4, device=device)"),
              "cuda:0")};
  const Frame call = line(61, "main", "    spread(labels)", "spread(labels)");
  find(wanted(finding), EvidenceKind::device_from, call, "device=\"cuda\"");
  find(odd(finding), EvidenceKind::given_at, call, "labels");
  return finding;
}

TEST_CASE("A call that gives a tensor of the host and leaves the device at the current GPU says both") {
  Finding finding = given_from_host();
  const Finding told = explained(finding);
  CHECK(told.rule == "current_device");
  CHECK(cause_line(told) == 61);
  CHECK_THAT(told.root_cause->why, Contains("What it meets is on the CPU."));
  CHECK_THAT(told.fix->text, Contains("Pass `device` here"));

  SECTION("which is the default's mistake where the function would follow the tensor without it") {
    find(wanted(finding), EvidenceKind::default_stands_at, line(24, "spread", "def spread(labels, device=\"cuda\"):"),
         "labels.device");
    const Finding by_default = explained(finding);
    CHECK(by_default.rule == "current_device");
    CHECK(cause_line(by_default) == 24);
  }
  SECTION("not where another call gave the tensor") {
    odd(finding).evidence.front().at.line = 62;
    CHECK(explained(finding).rule != "current_device");
  }
  SECTION("not where the call gives the device") {
    const char* call = "spread(labels, device=\"cuda\")";
    wanted(finding).evidence.front() = {EvidenceKind::device_from, line(61, "main", call, call), "device"};
    CHECK(explained(finding).rule != "current_device");
  }
}

// `x`, taken to `device`, meets weights that `model.cuda()` has moved.
Finding model_on_current_device() {
  Finding finding = add("x");
  odd(finding).device = "cuda:1";
  odd(finding).lineage = {moved(line(51, "main", "    x = x.to(device)", "x.to(device)"), "cuda:1")};
  find(odd(finding), EvidenceKind::device_from,
       line(44, "main", "    device = torch.device('cuda:1')", "torch.device('cuda:1')"), "device");
  wanted(finding).name = "self.weight";
  wanted(finding).is = NameKind::parameter;
  wanted(finding).lineage = {by_module(moved(line(49, "main", "    model.cuda()", "model.cuda()"), "cuda:0"))};
  return finding;
}

TEST_CASE("A model that goes to the current GPU beside inputs that go to a named one is the mistake") {
  Finding finding = model_on_current_device();
  const Finding told = explained(finding);
  CHECK(told.rule == "current_device");
  CHECK(cause_line(told) == 49);
  CHECK_THAT(told.root_cause->why, Contains("`x` was taken to cuda:1, which model.py:51 names"));
  CHECK_THAT(told.fix->text, Contains("same device as in model.py:51"));

  SECTION("not where the model's device is named, too") {
    wanted(finding).lineage.front().at = line(49, "main", "    model.to('cuda:0')", "model.to('cuda:0')");
    CHECK(explained(finding).rule != "current_device");
  }
  SECTION("also where nobody knows who gave the device, but not where it is another value's") {
    odd(finding).evidence.clear();
    CHECK(explained(finding).rule == "current_device");
    odd(finding).lineage.front().at = line(51, "main", "    x = x.to(y.device)", "x.to(y.device)");
    CHECK(explained(finding).rule != "current_device");
  }
  SECTION("not where the other one was told to go to the current GPU, too") {
    odd(finding).evidence.front().at = line(44, "main", "    device = pick('cuda')", "pick('cuda')");
    CHECK(cause_line(explained(finding)) != 49);
  }
  SECTION("not where it is no weight") {
    wanted(finding).is = NameKind::local;
    CHECK(explained(finding).rule != "current_device");
  }
}

TEST_CASE("A variable that a function's moves go to is the cause where the function gives it its value") {
  Finding finding = add("mask");
  odd(finding).lineage = {moved(line(41, "evaluate", "    mask = mask.to(device)", "mask.to(device)"), "cpu"),
                          created(line(5, "load", "    return torch.ones(4)", "torch.ones(4)"), "cuda:0")};
  find(odd(finding), EvidenceKind::device_from, line(38, "evaluate", "    device = choose(args)", "choose(args)"),
       "device");
  const Finding told = explained(finding);
  CHECK(told.rule == "moved_away");
  CHECK(cause_line(told) == 38);
  CHECK_THAT(told.root_cause->why, Contains("model.py:41 puts it on the CPU, because of `device`"));

  SECTION("not another function's, which hands it on") {
    odd(finding).evidence.front().at.function = "main";
    CHECK(cause_line(explained(finding)) == 41);
  }
  SECTION("nor what is a tensor by its name") {
    odd(finding).evidence.front().text = "other";
    CHECK(cause_line(explained(finding)) == 41);
  }
}

}  // namespace
}  // namespace devsan::report
