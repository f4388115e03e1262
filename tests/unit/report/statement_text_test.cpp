#include "report/model/statement_text.h"

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

TEST_CASE("A statement is a line without its comment") {
  CHECK(statement_of("  x.to(dev)  # moves") == "x.to(dev)");
  CHECK(statement_of("f('#')") == "f('#')");
  CHECK(statement_of("f(") == "");
  CHECK(statement_of("x = 'open") == "");
}

}  // namespace
}  // namespace devsan::report
