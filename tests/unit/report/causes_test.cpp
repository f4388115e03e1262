// What a report names as the cause of a failure, what it says of it, and where else the change could stand.
#include "report/causes/causes.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "program_findings.h"
#include "report/causes/cause_text.h"
#include "report/causes/mechanism.h"
#include "sample_program.h"

namespace devsan::report {
namespace {

using Catch::Matchers::Contains;
using program_findings::created;
using program_findings::odd;
using program_findings::wanted;

constexpr const char* kProgram = R"(
def weights():
    w = torch.ones(4)  # made
    return w
def step(x, flag):
    w = weights()
    y = w * 2
    return x + w  # fails
step(x.cuda(), True)  # call
)";

Finding failing_step(const SampleProgram& program) {
  Finding finding = program.failing("step", "x + w", "w", {program.at("call", "<module>", "step(x.cuda(), True)")});
  odd(finding).lineage = {created(program.at("made", "weights", "torch.ones(4)"))};
  return finding;
}

TEST_CASE("The first line of the ranking is the cause, and up to three others are where the change could stand") {
  SampleProgram program(kProgram);
  Finding finding = failing_step(program);
  add_causes(finding, program.codebase());
  REQUIRE(finding.root_cause);
  const RootCause& cause = *finding.root_cause;
  CHECK(cause.file == program_findings::kFile);
  CHECK(cause.line == program.line("made"));
  CHECK(cause.function == "weights");
  CHECK(cause.source == "    w = torch.ones(4)  # made");
  CHECK(cause.operand == "w");
  CHECK(cause.mechanism == "made_without_device");
  CHECK(cause.confidence.has_value());
  CHECK(cause.why ==
        "This line makes `w`, or what it comes from, without naming a device. `w` was on cpu; `x` was on cuda:0.");
  REQUIRE(finding.fix);
  CHECK(finding.fix->line == cause.line);
  CHECK(finding.fix->text == "Give `torch.ones` the device: `device='cuda:0'`");

  CHECK_FALSE(cause.fix);
  REQUIRE(finding.alternatives.size() == kMostAlternatives);
  const auto is_patched = [](const RootCause& one) { return one.fix && !one.fix->patches.empty(); };
  CHECK(std::ranges::any_of(finding.alternatives, is_patched));
  std::set<int> lines = {cause.line};
  for (const RootCause& one : finding.alternatives) {
    CHECK(lines.insert(one.line).second);
    CHECK(one.confidence == Confidence::possible);
    CHECK_FALSE(one.mechanism.empty());
    CHECK_FALSE(one.why.empty());
    CHECK_THAT(one.why, !Contains("was on cuda:0"));
    REQUIRE(one.fix);
    CHECK(one.fix->line == one.line);
    CHECK_FALSE(one.fix->text.empty());
  }
}

TEST_CASE("Without the text of a file that takes part no cause is named") {
  SampleProgram program(kProgram);
  Finding finding = failing_step(program);
  const Sources none;
  slice::Codebase codebase(none);
  add_causes(finding, codebase);
  CHECK_FALSE(finding.root_cause);
  CHECK_FALSE(finding.fix);
  CHECK(finding.alternatives.empty());
}

TEST_CASE("What PyTorch allowed, and what is no matter of devices, gets no cause") {
  SampleProgram program(kProgram);
  Finding allowed = failing_step(program);
  allowed.raised = false;
  add_causes(allowed, program.codebase());
  CHECK_FALSE(allowed.root_cause);
  Finding other = failing_step(program);
  other.kind = Kind::host_dereference;
  add_causes(other, program.codebase());
  CHECK_FALSE(other.root_cause);
}

// The line of a mark as a suspect of a role.
struct Suspected {
  Suspected(SampleProgram& program, const Finding& given, const char* mark, slice::Role role)
      : finding(given), code(program.codebase(), given) {
    candidate.file = &code.files().front()->file();
    candidate.line = program.line(mark);
    candidate.function = code.function_at(program.at(mark, "step"));
    place.role = role;
  }
  Suspect suspect() { return {candidate, place, &odd(finding), &wanted(finding)}; }
  std::string change() { return what_to_change(suspect(), finding, code); }

  Finding finding;
  slice::Code code;
  ranking::Candidate candidate;
  slice::Place place;
};

TEST_CASE("The other operand gives the device where the failing function knows it by then") {
  SampleProgram program(R"(
def step(x, w):  # parameters
    w = w * 2  # above
    y = make()  # binds
    return y + w  # fails
)");
  Finding finding = program.failing("step", "y + w", "w");
  Suspected above(program, finding, "above", slice::Role::computed);
  CHECK(above.change() ==
        "Move the result of this line to the device of `x` with `.to(x.device)`, or move what it is computed from.");
  wanted(above.finding).name = "y";
  CHECK_THAT(above.change(), Contains("this line to cuda:0,"));
  Suspected fails(program, above.finding, "fails", slice::Role::used);
  CHECK(fails.change() == "Move `w` to the device of `y` with `.to(y.device)` before you hand it on.");
  wanted(fails.finding).text = "rows[0] + 1";
  CHECK(fails.change() == "Move `w` to cuda:0 before you hand it on.");
}

TEST_CASE("What is read on the host goes to the host") {
  SampleProgram program(kProgram);
  Suspected one(program, failing_step(program), "fails", slice::Role::returned);
  odd(one.finding).device = "cuda:1";
  Suspect suspect = one.suspect();
  suspect.other = nullptr;
  CHECK(what_to_change(suspect, one.finding, one.code) == "Move the result to the CPU with `.cpu()`.");
  CHECK(what_disagreed(suspect) == "`w` was on cuda:1.");
}

TEST_CASE("An operand is called what it is, and by its argument where its name is long or not known") {
  SampleProgram program(kProgram);
  Suspected one(program, failing_step(program), "fails", slice::Role::used);
  Operand& operand = odd(one.finding);
  const auto said = [&] { return what_line_does(one.suspect()); };
  CHECK(said() == "This line uses `w`.");
  operand.is = trace::NameKind::parameter;
  CHECK(said() == "This line uses the parameter `w`.");
  CHECK(what_disagreed(one.suspect()) == "The parameter `w` was on cpu; `x` was on cuda:0.");
  operand.is = trace::NameKind::buffer;
  CHECK(said() == "This line uses the buffer `w`.");
  operand.name = std::string(41, 'n');
  CHECK(said() == "This line uses the operand `other`.");
  operand.name.clear();
  CHECK(said() == "This line uses the operand `other`.");
  operand.arg.clear();
  CHECK(said() == "This line uses the operand.");
  wanted(one.finding).device_argument = true;
  CHECK(what_disagreed(one.suspect()) == "The operand was on cpu; the call asks for cuda:0.");
}

TEST_CASE("An attribute that a line makes and keeps does not move with its module") {
  SampleProgram program(R"(
class Net(nn.Module):
    def __init__(self):
        self.w = torch.ones(4)  # stored
    def forward(self, x):
        return x + self.w  # fails
)");
  Finding finding = program.failing("Net.forward", "x + self.w", "self.w", {}, trace::NameKind::attribute);
  odd(finding).lineage = {created(program.at("stored", "Net.__init__", "torch.ones(4)"))};
  const auto told = [&] {
    add_causes(finding, program.codebase());
    REQUIRE(finding.root_cause);
    CHECK(finding.root_cause->line == program.line("stored"));
    return finding.root_cause->mechanism;
  };
  CHECK(told() == "kept_as_attribute");
  CHECK_THAT(finding.root_cause->why, Contains("keeps `self.w`, or what it comes from, in an attribute."));
  CHECK_THAT(finding.fix->text, Contains("Give `torch.ones` the device"));
  odd(finding).is = trace::NameKind::local;
  CHECK(told() == "made_without_device");
}

TEST_CASE("A weight is moved with its module, wherever it is made") {
  SampleProgram program(kProgram);
  for (const slice::Role role : {slice::Role::made, slice::Role::registered}) {
    Suspected one(program, failing_step(program), "fails", role);
    CHECK(mechanism_of(one.suspect()) == mechanism_of(role));
    odd(one.finding).is = trace::NameKind::buffer;
    CHECK(mechanism_of(one.suspect()) == Mechanism::module_not_moved);
    CHECK_THAT(one.change(), Contains("Move the buffer `w`, with the object that it belongs to, to the device of `x`"));
  }
}

TEST_CASE("Every role has a mechanism, and no change has a mark left in it") {
  SampleProgram program(kProgram);
  for (std::size_t k = 0; k < slice::kRoles; ++k) {
    Suspected one(program, failing_step(program), "fails", static_cast<slice::Role>(k));
    CHECK_FALSE(name_of(mechanism_of(one.place.role)).empty());
    CHECK_THAT(one.change(), !Contains("{") && Catch::Matchers::EndsWith("."));
    CHECK_THAT(what_line_does(one.suspect()), !Contains("{") && Catch::Matchers::EndsWith("."));
  }
}

}  // namespace
}  // namespace devsan::report
