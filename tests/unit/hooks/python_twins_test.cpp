#include "hooks/inprocess/source/python_twins.h"

#include <catch2/catch.hpp>

namespace devsan::hooks {
namespace {

std::string told(std::string_view statement, std::string_view other) {
  const auto twin = moved_by_twin(statement, other);
  return twin ? twin->expression + " " + twin->move : "";
}

TEST_CASE("A statement that reads the same but for names may move what another leaves") {
  CHECK(told("x = x + self.mlp(h)", "x = x + self.attention(n).to(x.device)") == "self.mlp(h) .to(x.device)");
  CHECK(told("return a + f(b)", "return c + g(d.cuda())") == "b .cuda()");
  CHECK(told("y = batch['y'] * scale", "x = batch['x'].to(dev, non_blocking=True) * scale") ==
        "batch['y'] .to(dev, non_blocking=True)");
  CHECK(told("k = self.k( x )", "q = self.q(x.cpu())") == "x .cpu()");
  CHECK(told("m = (a + b) * c", "n = (a + b).to(c.device) * c") == "(a + b) .to(c.device)");
  CHECK(told("z = rows[i][0] @ w", "z = cols[j][0].to(w.device) @ w") == "rows[i][0] .to(w.device)");
}

TEST_CASE("Statements that differ in more than names, or in more than one move, are no twins") {
  CHECK(told("x = x + self.mlp(h)", "x = x + self.attention(h)").empty());
  CHECK(told("x = x + self.mlp(h)", "x = x - self.mlp(h).to(x.device)").empty());
  CHECK(told("x = x + self.mlp(h)", "x = x + self.mlp(h, 2).to(x.device)").empty());
  CHECK(told("x = a + b", "x = a.to(d) + b.to(d)").empty());
  CHECK(told("x = 2 * f(b)", "x = 3 * f(b).to(d)").empty());
  CHECK(told("x = a.to(d) + b", "x = c.to(e) + f").empty());
  CHECK(told("for x in f(b):", "while x in f(b).to(d):").empty());
  CHECK(told("x = a", "x = a.to(d)").empty());
  CHECK(told("", "x = f(a).to(d)").empty());
  CHECK(told("x = 'a)", "x = 'b'.to(d").empty());
}

TEST_CASE("A move that both make counts for neither") {
  CHECK(told("x = a.to(d) + f(b)", "x = c.to(d) + g(e).to(d)") == "f(b) .to(d)");
}

}  // namespace
}  // namespace devsan::hooks
