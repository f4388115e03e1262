// What installed code does for the program is reported at the line of the program that called it.
#include "report/model/program_lines.h"

#include <catch2/catch.hpp>

#include "program_findings.h"

namespace devsan::report {
namespace {

using namespace program_findings;

Finding told(Finding finding) {
  tell_from_program(finding);
  return finding;
}

// `ema = Ema(net)`, which copies in the library, and `net.to(device)` below it.
Finding copied_by_library() {
  Finding finding = add("shadow");
  const LineageStep weight = created(line(4, "<module>", "net = Net()"));
  const Frame call = line(5, "<module>", "ema = Ema(net)");
  odd(finding).lineage = {called_by(derived(library_line(91, "Ema.__init__", "    self.shadow = p.clone()")), {call}),
                          weight};
  wanted(finding).lineage = {by_module(moved(line(6, "<module>", "net.to('cuda:0')"), "cuda:0")), weight};
  return finding;
}

TEST_CASE("A step in a library stands at the call of the program's that led to it") {
  const Finding finding = told(copied_by_library());
  const LineageStep& step = finding.operands[1].lineage.front();
  CHECK(step.at.line == 5);
  CHECK(step.calls.empty());
  REQUIRE(step.within.size() == 1);
  CHECK(step.within.front().line == 91);
}

TEST_CASE("The library's lines between the two are kept with it, innermost first") {
  Finding finding = copied_by_library();
  odd(finding).lineage.front().calls = {library_line(40, "Ema.copy", "    copies(net)"),
                                        line(12, "Trainer.setup", "    self.ema = Ema(net)"),
                                        line(50, "<module>", "Trainer().setup()")};
  const LineageStep step = told(finding).operands[1].lineage.front();
  CHECK(step.at.line == 12);
  REQUIRE(step.within.size() == 2);
  CHECK(step.within[0].line == 91);
  CHECK(step.within[1].line == 40);
  REQUIRE(step.calls.size() == 1);
  CHECK(step.calls[0].line == 50);
}

TEST_CASE("A call that a library still works at has done nothing for the program yet") {
  Finding finding = copied_by_library();
  finding.stack.push_back(odd(finding).lineage.front().calls.front());
  CHECK(told(finding).operands[1].lineage.front().at.line == 91);
}

TEST_CASE("A step without calls, and one of the program's, stay where they are") {
  Finding finding = copied_by_library();
  odd(finding).lineage.front().calls.clear();
  const Finding seen = told(finding);
  CHECK(seen.operands[1].lineage.front().at.line == 91);
  CHECK(seen.operands[1].lineage.back().at.line == 4);
}

TEST_CASE("A model that a library's `to()` moves was moved by the line that calls it") {
  Finding finding = add("labels");
  const Frame call = line(7, "<module>", "model = Model().to(labels.device)");
  odd(finding).lineage = {
      called_by(by_module(moved(library_line(99, "Model.to", "    return super().to(*args)"), "cpu")), {call}),
      created(line(3, "<module>", "labels = f()"), "cuda:0")};
  CHECK(told(finding).operands[1].lineage.front().at.line == 7);
}

}  // namespace
}  // namespace devsan::report
