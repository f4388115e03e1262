#include "hooks/inprocess/source/python_results.h"

#include <catch2/catch.hpp>

namespace devsan::hooks {
namespace {

constexpr std::string_view kProgram = R"(class Base:
    def check(self, out):
        device = "cpu"

        def inner():
            return 3

        return device, out.shape[0]


class Loss(Base):
    def place(self): return "cuda"

    def check_all(self):
        return self.check(1)


def plan(names, devices):
    table = {}
    for k, name in enumerate(names):
        table[name] = devices[k % len(devices)]
    return table


async def plan_twice(names):
    if not names:
        return None
    return plan(names, [])
)";

TEST_CASE("a variable is taken out of the result of a call") {
  CHECK(taken_by_assignment("device = self.check(x)", "device") == TakenOut{"self.check(x)"});
  CHECK(taken_by_assignment("device, n = self.check(x)", "n") == TakenOut{"self.check(x)", false, 1});
  CHECK(taken_by_assignment("(device, n) = check(x)", "device") == TakenOut{"check(x)", false, 0});
  CHECK_FALSE(taken_by_assignment("device, n = kept", "n"));
  CHECK_FALSE(taken_by_assignment("device, n = a(), b()", "other"));
  CHECK_FALSE(taken_by_assignment("device += f()", "device"));
}

TEST_CASE("a loop takes its variable out of what it goes through") {
  CHECK(taken_by_loop("for k, where in plan(a, b).items():", "where") == TakenOut{"plan(a, b)", true});
  CHECK(taken_by_loop("for where in self.plan.values():", "where") == TakenOut{"self.plan", true});
  CHECK(taken_by_loop("for i, where in enumerate(devices):", "where") == TakenOut{"devices", true});
  CHECK(taken_by_loop("for m, where in zip(stages, devices):", "where") == TakenOut{"devices", true});
  CHECK(taken_by_loop("for m, where in pairs:", "where") == TakenOut{"pairs", true, 1});
  CHECK(taken_by_loop("moved = {k: m.to(d) for m, (k, d) in rows}", "rows") == std::nullopt);
  CHECK(taken_by_loop("moved = [m.to(d) for m, d in zip(ms, ds) if m]", "d") == TakenOut{"ds", true});
  CHECK(taken_by_loop("x = [a for a in f(b[0])] + [d for d in ds]", "d") == TakenOut{"ds", true});
}

TEST_CASE("a key, a number and another loop's variable are taken out of nothing") {
  CHECK_FALSE(taken_by_loop("for k, where in plan.items():", "k"));
  CHECK_FALSE(taken_by_loop("for i, where in enumerate(devices):", "i"));
  CHECK_FALSE(taken_by_loop("for a in b:", "b"));
  CHECK_FALSE(taken_by_loop("before = for_all", "before"));
  CHECK_FALSE(taken_by_loop("for m, where in zip(a, b, c):", "where"));
}

TEST_CASE("a device is computed by a function of the program") {
  CHECK(device_computed_by("torch.randn(2, device=place_of(net))") == "place_of(net)");
  CHECK(device_computed_by("torch.randn(2, device=torch.device('cpu'))").empty());
  CHECK(device_computed_by("torch.randn(2, device=device)").empty());
  CHECK(device_computed_by("torch.randn(place_of(net))").empty());
}

TEST_CASE("a device is an entry of a table by a key that is no literal, or chosen by whether something is in one") {
  CHECK(table_of_device("module.to(rules[name])") == "rules");
  CHECK(table_of_device("torch.zeros(2, device=self.plan[k % 2])") == "self.plan");
  CHECK(table_of_device("m.to(gpu if name in presets.get(stage, []) else 'cpu')") == "presets");
  CHECK(table_of_device("m.to(device=gpu if name in self.kept[0] else 'cpu')") == "self.kept");
  CHECK(table_of_device("module.to(rules['embed'])").empty());
  CHECK(table_of_device("module.to(device)").empty());
  CHECK(table_of_device("m.to(gpu if ready else 'cpu')").empty());
  CHECK(table_of_device("torch.zeros(rules[name])").empty());
  CHECK(table_of_device("torch.zeros(2").empty());
}

TEST_CASE("what a function returns is told of its only return, whatever functions it has inside") {
  const SourceLines lines(kProgram);
  CHECK(value_returned(lines, 2, 0)->text == "device");
  CHECK(value_returned(lines, 2, 0)->line == 8);
  CHECK(value_returned(lines, 2, 1)->text == "out.shape[0]");
  CHECK_FALSE(value_returned(lines, 2, 2));
  CHECK_FALSE(value_returned(lines, 2, std::nullopt));
  CHECK(value_returned(lines, 18, std::nullopt)->text == "table");
  CHECK_FALSE(value_returned(lines, 18, 0));
  CHECK_FALSE(value_returned(lines, 25, std::nullopt));
}

TEST_CASE("the only line that fills a container is found between two lines") {
  const SourceLines lines(kProgram);
  CHECK(value_put(lines, "table", 19, 23)->line == 21);
  CHECK(value_put(lines, "table", 19, 23)->text == "devices[k % len(devices)]");
  CHECK_FALSE(value_put(lines, "table", 22, 30));
  const SourceLines twice("t[a] = 1\nt[b] = 2\n");
  CHECK_FALSE(value_put(twice, "t", 1, 3));
}

TEST_CASE("a call leads to the only definition that it can mean") {
  const SourceLines lines(kProgram);
  CHECK(definition_called(lines, 15, "self.place") == 12);
  CHECK(definition_called(lines, 15, "self.check") == 2);
  CHECK(definition_called(lines, 28, "plan") == 18);
  CHECK(definition_called(lines, 15, "plan_twice") == 25);
  CHECK(definition_called(lines, 15, "check") == 0);
  CHECK(definition_called(lines, 15, "other.place") == 0);
  CHECK(definition_called(lines, 15, "self.missing") == 0);
}

}  // namespace
}  // namespace devsan::hooks
