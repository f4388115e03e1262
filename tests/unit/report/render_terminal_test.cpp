#include "report/render/render_terminal.h"

#include <catch2/catch.hpp>
#include <sstream>

#include "golden.h"
#include "report/render/source_excerpt.h"
#include "report/render/summary.h"
#include "report/text/text_layout.h"
#include "samples.h"

namespace devsan::report {
namespace {

using Catch::Matchers::Contains;

const Style kPlain{false, 80};

std::size_t widest_line(const std::string& text) {
  std::size_t columns = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) columns = std::max(columns, columns_of(line));
  return columns;
}

Frame line_of_code(std::string source, int column, int end_column) {
  Frame frame;
  frame.file = "/srv/app/model.py";
  frame.line = frame.end_line = 7;
  frame.source = std::move(source);
  frame.column = column;
  frame.end_column = end_column;
  return frame;
}

Operand named(std::string name, std::string device, bool odd = false) {
  Operand operand;
  operand.arg = "arg";
  operand.name = std::move(name);
  operand.device = std::move(device);
  operand.shape.emplace();
  operand.odd = odd;
  return operand;
}

std::vector<std::string> shown(const Frame& frame, const std::vector<Operand>& operands, std::size_t width = 80) {
  return excerpt(frame, marks_for(frame, operands), 4, {false, width});
}

TEST_CASE("A name with single quotes is found in source with double ones") {
  const Frame frame = line_of_code("d = cdist(x, target[\"boxes\"])", 4, 29);
  const auto lines = shown(frame, {named("x", "cuda:0"), named("target['boxes']", "cpu", true)});
  REQUIRE(lines.size() > 1);
  CHECK_THAT(lines[1], Contains("^^^^^^^^^^^^^^^ cpu"));
}

TEST_CASE("Findings read as they should") {
  check_golden("offloaded_gradient.txt", render_finding(samples::offloaded_gradient(), kPlain));
  check_golden("plain_attribute.txt", render_finding(samples::plain_attribute(), kPlain));
  check_golden("allowed_scalar.txt", render_finding(samples::allowed_scalar(), kPlain));
}

TEST_CASE("A run with damage and processes that ended oddly reads as it should") {
  Report report = samples::report_of({samples::plain_attribute()});
  Process lost = report.run.processes.front();
  lost.rank = 1;
  lost.pid = 4243;
  lost.close = trace::CloseMark::open;
  lost.lost_events = 3;
  Thread thread{4243, "MainThread", 12, {}};
  LastOperator last;
  last.op = "aten::addmm";
  last.at = line_of_code("", -1, -1);
  last.step = 12;
  thread.last = {last};
  lost.threads = {thread};
  report.run.processes.push_back(lost);
  report.run.notices = {{"The trace is full, later findings are counted only.", 4243, 1, 2}};
  report.damage = {{"/srv/out/rank0.4242.devsan", 4096, 3277, "a record's checksum does not fit"},
                   {"/srv/out/rank2.4244.devsan", 0, 0, "not a trace"}};
  check_golden("summary.txt", summary(report, kPlain));
}

TEST_CASE("No line is wider than the terminal") {
  Finding wide = samples::offloaded_gradient();
  wide.operands[0].name = std::string(300, 'n');
  wide.operands[1].device = std::string(300, 'd');
  wide.where->function = std::string(300, 'f');
  wide.where->source = "    " + std::string(500, 's');
  wide.message = std::string(500, 'm');
  wide.op = std::string(200, 'o');
  wide.thread_name = "t";
  for (const std::size_t width : {60u, 80u, 110u}) {
    const Style style{false, width};
    CHECK(widest_line(render_finding(samples::offloaded_gradient(), style)) <= width);
    CHECK(widest_line(render_finding(wide, style)) <= width);
    CHECK(widest_line(summary(samples::report_of({wide}), style)) <= width);
  }
}

TEST_CASE("Colour changes nothing but colour") {
  const std::string coloured = render_finding(samples::plain_attribute(), {true, 80});
  std::string plain;
  for (std::size_t i = 0; i < coloured.size(); ++i) {
    if (coloured[i] == '\x1b') {
      i = coloured.find('m', i);
    } else {
      plain += coloured[i];
    }
  }
  CHECK(coloured != plain);
  CHECK(plain == render_finding(samples::plain_attribute(), kPlain));
}

TEST_CASE("Notes are hidden behind one line unless they are asked for") {
  const Report report = samples::report_of({samples::allowed_scalar()});
  CHECK_THAT(render_terminal(report, kPlain, {}), Contains("1 note hidden, --notes shows them"));
  CHECK_THAT(render_terminal(report, kPlain, {}), !Contains("mixed-operands"));
  CHECK_THAT(render_terminal(report, kPlain, {.notes = true}), Contains("note[mixed-operands]") && !Contains("hidden"));
}

TEST_CASE("A clean run is one line, and nothing to tell") {
  const Report report = samples::report_of({});
  CHECK(summary(report, kPlain) == "devsan: no finding in 1 process, 18 steps\n");
  CHECK_FALSE(has_something_to_tell(report));
  CHECK_FALSE(has_something_to_tell(samples::report_of({samples::allowed_scalar()})));
  CHECK(has_something_to_tell(samples::report_of({samples::plain_attribute()})));
}

TEST_CASE("Operands are marked where they stand in the call") {
  const auto lines =
      shown(line_of_code("    y = f(x, self.w)", 8, 20), {named("x", "cuda:0"), named("self.w", "cpu", true)});
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == "   7 │ y = f(x, self.w)");
  CHECK(lines[1] == "     │       -  ^^^^^^ cpu");
  CHECK(lines[2] == "     │       cuda:0");
}

TEST_CASE("A name is found as an expression, not as a part of another one") {
  const auto lines = shown(line_of_code("xx = x.weight + ax.x + x", 5, 24), {named("x", "cpu", true)});
  CHECK(lines[1] == "     │                        ^ cpu");
}

TEST_CASE("Columns are bytes of the source, and marks are columns of the terminal") {
  const std::string source = "\tgröße = 訓練(x)\t+ y";
  const auto at = static_cast<int>(source.find("訓練"));
  const auto lines = shown(line_of_code(source, at, static_cast<int>(source.size())), {named("y", "cpu", true)});
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == "   7 │ größe = 訓練(x)    + y");
  CHECK(lines[1] == "     │                      ^ cpu");
}

TEST_CASE("The call is marked where no operand stands in it, unless it is the whole line") {
  CHECK(shown(line_of_code("  y = f(x) + 1", 6, 10), {})[1] == "     │     ^^^^");
  CHECK(shown(line_of_code("  f(x)", 2, 6), {}).size() == 1);
  CHECK(shown(line_of_code("  f(x)", -1, -1), {}).size() == 1);
}

TEST_CASE("A long line is broken outside of what is marked") {
  const auto lines = shown(line_of_code("result = some_function(first_argument, second + third)", 9, 54),
                           {named("second + third", "cpu", true)}, 54);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == "   7 │ result = some_function(first_argument, ");
  CHECK(lines[1] == "     │     second + third)");
  CHECK(lines[2] == "     │     ^^^^^^^^^^^^^^ cpu");
}

TEST_CASE("Of a line that is far too long the marked part is shown") {
  const std::string source = std::string(400, 'a') + " + x" + std::string(400, 'b');
  auto lines = shown(line_of_code(source, 403, 404), {});
  REQUIRE(lines.size() >= 2);
  CHECK_THAT(lines[0], Contains("…xbbb"));
  CHECK_THAT(lines[1], Contains("│  ^"));
}

TEST_CASE("Columns beyond the line do no harm") {
  CHECK(shown(line_of_code("f(x)", 100, 200), {named("x", "cpu", true)}).size() == 2);
  CHECK(shown(line_of_code("f(x)", 3, 1), {}).size() == 1);
  CHECK(shown(line_of_code("", 3, 9), {}).empty());
  CHECK(shown(line_of_code("   \t ", 3, 9), {}).empty());
}

Frame call_at_line(int number, std::string source) {
  Frame frame = line_of_code(std::move(source), -1, -1);
  frame.line = frame.end_line = number;
  return frame;
}

TEST_CASE("Calls that led to an operand's origin stand below it, but for those of the stack that failed") {
  Finding finding = samples::plain_attribute();
  LineageStep& origin = finding.operands[1].lineage.back();
  origin.calls = {call_at_line(40, "    self.bias = bias_of(3)"), call_at_line(41, "net = Net()"),
                  call_at_line(42, "nets = [build()]"), call_at_line(43, "run()")};
  std::string text = render_finding(finding, kPlain);
  CHECK_THAT(text, Contains("      called  model.py:40  self.bias = bias_of(3)\n") &&
                       Contains("      called  model.py:42  nets = [build()]\n") && !Contains("run()"));
  CHECK(widest_line(text) <= 80);
  Frame caller = call_at_line(41, "net = Net()");
  finding.stack.push_back(caller);
  text = render_finding(finding, kPlain);
  CHECK_THAT(text,
             Contains("called  model.py:40") && !Contains("called  model.py:41") && !Contains("called  model.py:42"));
  finding.root_cause->file = origin.calls.front().file;
  finding.root_cause->line = 40;
  CHECK_THAT(render_finding(finding, kPlain), Contains("  \u25b8   called  model.py:40"));
}

TEST_CASE("A cause is told with how sure it is, and one that the run itself shows without") {
  Finding finding = samples::plain_attribute();
  CHECK_THAT(render_finding(finding, kPlain), Contains("  Likely cause at /srv/train/model.py:19\n"));
  finding.root_cause->confidence = Confidence::possible;
  CHECK_THAT(render_finding(finding, kPlain), Contains("  Possible cause at /srv/train/model.py:19\n"));
  finding.root_cause->confidence.reset();
  CHECK_THAT(render_finding(finding, kPlain), Contains("  Cause at /srv/train/model.py:19\n"));
}

TEST_CASE("A cause on no line of a history is shown with the text that it has") {
  Finding finding = samples::plain_attribute();
  finding.root_cause->line = 12;
  CHECK_THAT(render_finding(finding, kPlain), !Contains("   12 │"));
  finding.root_cause->source = "        self.make_bias(3)";
  CHECK_THAT(render_finding(finding, kPlain), Contains("   12 │ self.make_bias(3)\n"));
}

TEST_CASE("The other operand's history is shown where a cause or another line to change is about it") {
  Finding finding = samples::plain_attribute();
  LineageStep step = finding.operands[1].lineage.back();
  step.device = "cuda:0";
  finding.operands[0].lineage = {step};
  const char* const heading = "Where `s` on cuda:0 comes from";
  CHECK_THAT(render_finding(finding, kPlain), !Contains(heading));
  RootCause other = *finding.root_cause;
  other.operand = "s";
  finding.alternatives = {other};
  CHECK_THAT(render_finding(finding, kPlain), Contains(heading) && Contains("Where `self.bias` on cpu comes from"));
  finding.alternatives.clear();
  finding.root_cause->operand = "s";
  CHECK_THAT(render_finding(finding, kPlain), Contains(heading) && Contains("Where `self.bias` on cpu comes from"));
}

TEST_CASE("Other lines to change stand below the change, each with its reason") {
  const std::string text = render_finding(samples::offloaded_gradient(), kPlain);
  const std::size_t heading = text.find("  Or change one of these lines\n");
  REQUIRE(heading != text.npos);
  CHECK(text.find("Change in that line") < heading);
  CHECK(text.find(":2117\n      This line uses `1. / combined_scale`.\n", heading) != text.npos);
  CHECK_THAT(render_finding(samples::plain_attribute(), kPlain), !Contains("Or change one"));
}

TEST_CASE("A line that a comprehension stands in is shown once as a call, however many functions it is") {
  Finding finding = samples::plain_attribute();
  LineageStep& origin = finding.operands[1].lineage.back();
  const Frame itself = origin.at;
  const Frame layers = call_at_line(40, "    self.layers = [Layer(n) for n in sizes]");
  origin.calls = {itself, layers, layers, call_at_line(42, "net = Net()")};
  const std::string text = render_finding(finding, kPlain);
  const std::size_t first = text.find("called  model.py:40");
  CHECK(first != text.npos);
  CHECK(text.find("called  model.py:40", first + 1) == text.npos);
  CHECK_THAT(text, Contains("called  model.py:42") && !Contains("called  model.py:" + std::to_string(itself.line)));
}

TEST_CASE("What is told of a finding's circumstances is not broken inside") {
  Finding finding = samples::plain_attribute();
  finding.ranks = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  finding.thread_name = "MainThread";
  finding.pid = 17622;
  finding.count = 12;
  for (std::size_t width = 60; width <= 110; ++width) {
    const std::string text = render_finding(finding, {false, width});
    for (const char* part : {"ranks 0-11", "first at step", "thread MainThread", "pid 17622", "12 times"}) {
      CHECK_THAT(text, Contains(part));
    }
  }
}

}  // namespace
}  // namespace devsan::report
