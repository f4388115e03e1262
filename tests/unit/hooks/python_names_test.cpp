#include "hooks/inprocess/source/python_names.h"

#include <catch2/catch.hpp>

namespace devsan::hooks {
namespace {

using Paths = std::vector<std::string>;

TEST_CASE("a text's variables are told with their attributes, each once") {
  CHECK(paths_of_variables("self.net.run(x, axis=scales[k].rows) + x") == Paths{"self.net", "x", "scales", "k"});
  CHECK(paths_of_variables("keep != 0") == Paths{"keep"});
  CHECK(paths_of_variables("logits[..., :-1, :][keep != 0].contiguous()") == Paths{"logits", "keep"});
  CHECK(paths_of_variables("{k: v.cpu() for k, v in self.cache.items()}") == Paths{"k", "v", "self.cache"});
}

TEST_CASE("keywords, functions, strings and Python's own words are no variables") {
  CHECK(paths_of_variables("dict(a, mode=b, other == c)") == Paths{"a", "b", "other", "c"});
  CHECK(paths_of_variables("build('x.y', r\"z\", f'{w}')").empty());
  CHECK(paths_of_variables("a if not b else None") == Paths{"a", "b"});
  CHECK(paths_of_variables("1.5 * 2e3 + 0x1f").empty());
  CHECK(paths_of_variables("").empty());
}

TEST_CASE("what a statement assigns stands behind its last equals sign") {
  CHECK(assigned_text("a = b = c.d") == "c.d");
  CHECK(assigned_text("a[k == 1] = f(x=1)") == "f(x=1)");
  CHECK(assigned_text("a: int = b") == "b");
  CHECK(assigned_text("a = b if c == d else e <= f") == "b if c == d else e <= f");
  CHECK(assigned_text("a += b") == "a += b");
  CHECK(assigned_text("x = '=' + y") == "'=' + y");
  CHECK(assigned_text("f(a, b)") == "f(a, b)");
}

TEST_CASE("a loop's variables come from what it goes through") {
  CHECK(assigned_text("for k, v in items.values():") == "items.values():");
  CHECK(assigned_text("async for batch in loader:") == "loader:");
  CHECK(assigned_text("with open(x) as f:") == "with open(x) as f:");
}

}  // namespace
}  // namespace devsan::hooks
