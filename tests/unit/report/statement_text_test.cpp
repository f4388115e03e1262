#include "report/statement_text.h"

#include <catch2/catch.hpp>
#include <string>

namespace devsan::report {
namespace {

std::string assignment(std::string_view line) {
  const auto parts = split_assignment(line);
  return parts ? std::string(parts->target) + " <- " + std::string(parts->value) : "";
}

TEST_CASE("An assignment has one target and a value") {
  CHECK(assignment("    self.bias = torch.ones(3)  # why") == "self.bias <- torch.ones(3)");
  CHECK(assignment("x: torch.Tensor = f(a=1)") == "x <- f(a=1)");
  CHECK(assignment("d['a=b'] = y") == "d['a=b'] <- y");
  CHECK(assignment("x, y = batch") == "x, y <- batch");
  CHECK(assignment("s = '# no comment'") == "s <- '# no comment'");
}

TEST_CASE("What is no single assignment is none") {
  CHECK(assignment("a = b = c") == "");
  CHECK(assignment("x += 1") == "");
  CHECK(assignment("if x == y:") == "");
  CHECK(assignment("while (n := f()) <= 3:") == "");
  CHECK(assignment("f(a=1)") == "");
  CHECK(assignment("x = f(") == "");
  CHECK(assignment("") == "");
}

TEST_CASE("What an assignment gives to one of its targets is told from what it gives to the others") {
  CHECK(value_given("self.net = net  # kept", "self.net") == "net");
  CHECK(value_given("self.a, self.net = a.eval(), net", "self.net") == "net");
  CHECK(value_given("self.a, self.net = f(a, b), net", "self.a") == "f(a, b)");
  CHECK(value_given("self.a, d[1, 2] = 'x, y', net", "d[1, 2]") == "net");
  CHECK(value_given("self.net: Net = net", "self.net") == "net");
  CHECK(value_given("self.net = net, other", "self.net") == "net, other");
  CHECK(value_given("self.a, self.net = parts", "self.net").empty());
  CHECK(value_given("self.a, self.net = net", "net").empty());
  CHECK(value_given("self.other = net", "self.net").empty());
  CHECK(value_given("a = self.net = net", "self.net").empty());
  CHECK(value_given("self.net.train()", "self.net").empty());
}

TEST_CASE("Taking a container apart computes nothing") {
  CHECK(only_takes_apart("acts = batch['acts']"));
  CHECK(only_takes_apart("x, y = batch"));
  CHECK(only_takes_apart("tokens = prompt  # kept"));
  CHECK(only_takes_apart("ids = item.ids[0]"));
  CHECK(only_takes_apart("for x, y in loader:"));
  CHECK_FALSE(only_takes_apart("x = batch['x'].to(dev)"));
  CHECK_FALSE(only_takes_apart("x = a + b"));
  CHECK_FALSE(only_takes_apart("x = 3"));
  CHECK_FALSE(only_takes_apart("x = None"));
  CHECK_FALSE(only_takes_apart("x = [a, b]"));
  CHECK_FALSE(only_takes_apart("return x"));
}

TEST_CASE("A statement is a line without its comment") {
  CHECK(statement_of("  x.to(dev)  # moves") == "x.to(dev)");
  CHECK(statement_of("f('#')") == "f('#')");
  CHECK(statement_of("f(") == "");
  CHECK(statement_of("x = 'open") == "");
}

TEST_CASE("Statements that keep something as an entry are told from others") {
  CHECK(stores_entry("masks[key] = a | b"));
  CHECK(stores_entry("    self.grids[scale] = torch.stack(parts, -1)  # anew"));
  CHECK_FALSE(stores_entry("mask = masks[key]"));
  CHECK_FALSE(stores_entry("self.mask = a | b"));
  CHECK_FALSE(stores_entry("masks[key] += b"));
  CHECK_FALSE(stores_entry("masks[key] = torch.cat("));
}

TEST_CASE("A function hands back what it was given, moved, and computes nothing") {
  CHECK(only_hands_back_moved("    return image.detach().cpu()"));
  CHECK(only_hands_back_moved("    return {k: v.to(device) for k, v in batch.items()}"));
  CHECK(only_hands_back_moved("return x.cpu() if isinstance(x, Tensor) else x"));
  CHECK_FALSE(only_hands_back_moved("    return self.head(x).cpu()"));
  CHECK_FALSE(only_hands_back_moved("    return (x - self.mean).cpu()"));
  CHECK_FALSE(only_hands_back_moved("    return table[index].to(device)"));
  CHECK_FALSE(only_hands_back_moved("    return self.table.to(device)"));
  CHECK_FALSE(only_hands_back_moved("    image = image.cpu()"));
  CHECK_FALSE(only_hands_back_moved("    return image.float()"));
}

}  // namespace
}  // namespace devsan::report
