#include "hooks/inprocess/source/python_text.h"

#include <catch2/catch.hpp>

namespace devsan::hooks {
namespace {

TEST_CASE("A device is what a factory, a move or a likeness names, if one alone is named") {
  CHECK(device_expression("torch.zeros(3, device=self.device)") == "self.device");
  CHECK(device_expression("torch.arange(n, device = x.device)").empty());
  CHECK(device_expression("torch.arange(longest, device=lengths.device, dtype=torch.long)") == "lengths");
  CHECK(device_expression("x.to(self.home)") == "self.home");
  CHECK(device_expression("x.to(y.device, dtype=torch.half)") == "y");
  CHECK(device_expression("x.to(device=dev)") == "dev");
  CHECK(device_expression("torch.zeros_like(unknown, dtype=a.dtype)") == "unknown");
  CHECK(device_expression("torch.zeros(3, device=a) + torch.ones(3, device=b)").empty());
  CHECK(device_expression("torch.zeros(3, device='cpu')").empty());
  CHECK(device_expression("x.to(torch.device('cpu'))").empty());
  CHECK(device_expression("x.to(torch.device(place))") == "place");
  CHECK(device_expression("x.to(torch.device('cuda', rank))").empty());
  CHECK(device_expression("f(my_device=x)").empty());
  CHECK(device_expression("x.to(dtype=torch.half)").empty());
  CHECK(device_expression("x.to(torch.half)").empty());
  CHECK(device_expression("x.to(self.dtype)").empty());
  CHECK(device_expression("x.to(torch.half).to(dev)") == "dev");
  CHECK(device_expression("torch.zeros(3)").empty());
}

TEST_CASE("A dictionary of keyword arguments that is unpacked may hold the device") {
  CHECK(device_expression("x.to(**self.options)") == "**self.options");
  CHECK(device_expression("torch.empty(n, **kwargs)") == "**kwargs");
  CHECK(device_expression("torch.empty(n, device=dev, **kwargs)") == "dev");
  CHECK(device_expression("torch.full(n, 2 ** k)") == "");
  CHECK(device_expression("f(**a, **b)") == "");
  CHECK(entry_of_display("dict(dtype=torch.float32, device=device)", "device") == "device");
  CHECK(entry_of_display("{'device': self.where, \"dtype\": kind}", "device") == "self.where");
  CHECK(entry_of_display("{'dtype': kind}", "device") == "");
  CHECK(entry_of_display("options", "device") == "");
}

TEST_CASE("An entry of a dictionary of settings is found by its key") {
  CHECK(device_expression("torch.zeros(3, device=cfg['device'])") == "cfg['device']");
  CHECK(device_expression("x.to(self.cfg[\"gpu\"])") == "self.cfg[\"gpu\"]");
  const auto entry = entry_reference("torch.device(self.cfg['device'])");
  REQUIRE(entry);
  CHECK(entry->container == "self.cfg");
  CHECK(entry->key == "device");
  CHECK_FALSE(entry_reference("devices[0]"));
  CHECK_FALSE(entry_reference("f(x)['device']"));
  CHECK_FALSE(entry_reference("cfg"));
  CHECK(entry_of_display("dict(gpu='cuda:1')", "gpu") == "'cuda:1'");
  CHECK(entry_of_display("{device: 1}", "device").empty());
  CHECK(is_dict_display("{**given, **standard}"));
  CHECK_FALSE(is_dict_display("load(path)"));
}

TEST_CASE("A name is mentioned as a variable, as an attribute, or in quotes") {
  CHECK(mentions_name("[self.actor, critic]", "actor"));
  CHECK(mentions_name("('actor',)", "actor"));
  CHECK_FALSE(mentions_name("[self.actor_target]", "actor"));
  CHECK_FALSE(has_word("[self.actor]", "actor"));
  CHECK(name_in("actors, self.actor", "actor") == 13);
  CHECK(name_in("actor, actor", "actor", 1) == 7);
  CHECK(name_in("actor1", "actor") == std::string_view::npos);
}

TEST_CASE("The value of one target of an assignment is found") {
  CHECK(assigned_to("self.home = tensor.device", "self.home") == "tensor.device");
  CHECK(assigned_to("self.name, self.device = name, device", "self.device") == "device");
  CHECK(assigned_to("self.device: str = 'cpu'", "self.device") == "'cpu'");
  CHECK(assigned_to("self.a, self.device = pair", "self.device") == "");
  CHECK_FALSE(assigned_to("self.device == other", "self.device"));
  CHECK_FALSE(assigned_to("f(device=self.device)", "self.device"));
  CHECK_FALSE(assigned_to("x = self.device", "self.device"));
  CHECK_FALSE(assigned_to("self.device += 1", "self.device"));
}

TEST_CASE("An entry that a statement stores is found among its targets") {
  const auto plain = entry_stored("grids[height, 'a]'] = made[None]");
  REQUIRE(plain);
  CHECK(plain->container == "grids");
  CHECK(plain->key == "height, 'a]'");
  CHECK(plain->value == "made[None]");
  const auto second = entry_stored("found = self.tables[(a, b)] = build(a, size=b)");
  REQUIRE(second);
  CHECK(second->container == "self.tables");
  CHECK(second->key == "(a, b)");
  CHECK(second->value == "build(a, size=b)");
  CHECK_FALSE(entry_stored("x = grids[key]"));
  CHECK_FALSE(entry_stored("grids[key].shape = 1"));
  CHECK_FALSE(entry_stored("grids[key] += 1"));
  CHECK_FALSE(entry_stored("make(x)[key] = 1"));
  CHECK_FALSE(entry_stored("if grids[key] == 1: pass"));
}

TEST_CASE("A word is found whole, and not as an attribute of something else") {
  CHECK(has_word("(key, size)", "key"));
  CHECK(has_word("key.dtype", "key"));
  CHECK_FALSE(has_word("(keys, x.key)", "key"));
  CHECK_FALSE(has_word("x", ""));
}

TEST_CASE("Arguments are split at their own commas") {
  const auto arguments = arguments_at("f(a, g(b, c), [d, 'e, f'], key=h)", 1);
  REQUIRE(arguments);
  CHECK(*arguments == std::vector<std::string>{"a", "g(b, c)", "[d, 'e, f']", "key=h"});
  CHECK_FALSE(arguments_at("f(a, b", 1));
  CHECK(arguments_at("f()", 1)->empty());
}

TEST_CASE("A line belongs to the function and the class around it, whatever stands between") {
  const SourceLines lines(
      "import torch\n\nclass Net:\n    def make(self):\n        if self:\n# why\n            x = f(1)\n\n    size = "
      "f(2)\n"
      "def f(n):\n    return n\nf(3)");
  CHECK(qualified_function(lines, 7) == "Net.make");
  CHECK(qualified_function(lines, 9) == "<module>");
  CHECK(qualified_function(lines, 11) == "f");
  CHECK(qualified_function(lines, 12) == "<module>");
  CHECK(enclosing_line(lines, 7, "class ") == 3);
}

TEST_CASE("A block ends where a line is indented no more than its head") {
  const SourceLines lines(
      "async def f(n):\n    for k in n:\n        g(k)\n\n        h(k)\n# why\n    return n\n\ndef g(\n    a,\n):\n    "
      "return a\nx = f(1)\ny = x");
  CHECK(qualified_function(lines, 5) == "f");
  CHECK(enclosing_line(lines, 5, "def ") == 1);
  CHECK(end_of_function(lines, 3) == 7);
  CHECK(end_of_block(lines, 3, 2) == 5);
  CHECK(qualified_function(lines, 12) == "g");
  CHECK(end_of_function(lines, 12) == 12);
  CHECK(end_of_function(lines, 13) == 14);
}

TEST_CASE("A call is no definition, no comment and no longer name") {
  CHECK(call_in("x = torch.jit.trace(f, a)", "jit.trace") == 10);
  CHECK(call_in("def trace(f):", "trace") == std::string_view::npos);
  CHECK(call_in("x = 1  # trace(f)", "trace") == std::string_view::npos);
  CHECK(call_in("retrace(f)", "trace") == std::string_view::npos);
  CHECK(call_in("trace_module(f)", "trace") == std::string_view::npos);
}

TEST_CASE("A statement goes on to the last bracket that is closed") {
  const SourceLines lines("a = 1\nx = f(  # why\n    1,\n    g(2))\nb = 2");
  CHECK(lines.count() == 5);
  CHECK(statement_at(lines, 1) == "a = 1");
  CHECK(statement_at(lines, 2) == "x = f( 1, g(2))");
  CHECK(lines[0].empty());
  CHECK(lines[6].empty());
}

TEST_CASE("The lines that assign to a variable are found, and what a statement goes on to") {
  const SourceLines lines(
      "def f(x):\n    a = x\n    b = g(\n        a,\n    )\n    if b:\n        a, c = 1, b\n    ab = a");
  CHECK(assignments_of(lines, "a", 2, 9) == std::vector<int>{2, 7});
  CHECK(assignments_of(lines, "b", 2, 9) == std::vector<int>{3});
  CHECK(assignments_of(lines, "x", 2, 9).empty());
  CHECK(goes_on_to(lines, 3, 4));
  CHECK(goes_on_to(lines, 3, 3));
  CHECK_FALSE(goes_on_to(lines, 3, 6));
  CHECK(end_of_statement(lines, 3) == 5);
  const SourceLines call("x = f(\n    x=1,\n)\nmix = 2\nx = 2");
  CHECK(assignments_of(call, "x", 1, 6) == std::vector<int>{1, 5});
}

TEST_CASE("A statement is known by the name that it begins with") {
  CHECK(leading_name("moved = batch.to(device)") == "moved");
  CHECK(leading_name("batch['x'] = x") == "batch");
  CHECK(leading_name("run") == "run");
  CHECK(leading_name("(a, b) = c").empty());
  CHECK(leading_name("2 + x").empty());
  CHECK(leading_name("").empty());
}

TEST_CASE("What each turn of a loop binds stands between its keywords") {
  CHECK(loop_targets("for k, (x, y) in enumerate(pairs):") == "k, (x, y)");
  CHECK(loop_targets("x = 3 if y in z else 4").empty());
  CHECK(loop_targets("for").empty());
}

TEST_CASE("The decorator of a method is found in its own class alone") {
  const SourceLines lines(
      "class A:\n    @property\n    def device(self):\n        return 1\n\n    def size(self):\n        return 2\n\n"
      "class B:\n    @functools.cached_property\n    def home(self):\n        return 3");
  CHECK(decorator_of(lines, 1, "device") == 2);
  CHECK(decorator_of(lines, 1, "size") == 0);
  CHECK(decorator_of(lines, 1, "home") == 0);
  CHECK(decorator_of(lines, 9, "home") == 10);
  CHECK(decorator_of(lines, 0, "device") == 0);
}

TEST_CASE("A variable has one value above a line where the function assigns it once") {
  const SourceLines lines(
      "def f(state):\n"
      "    part = state['a']\n"
      "    x = part\n"
      "    x = 2\n"
      "    return part, x\n");
  CHECK(only_value_above(lines, 5, "part") == "state['a']");
  CHECK(only_value_above(lines, 5, "x").empty());
  CHECK(only_value_above(lines, 4, "x") == "part");
  CHECK(only_value_above(lines, 2, "part").empty());
  CHECK(only_value_above(lines, 5, "state").empty());
}

}  // namespace
}  // namespace devsan::hooks
