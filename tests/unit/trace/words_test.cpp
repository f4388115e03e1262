#include "trace/words.h"

#include <array>
#include <catch2/catch.hpp>

namespace devsan::trace {
namespace {

TEST_CASE("A method is called where its whole name stands between a dot and a bracket") {
  constexpr std::array<std::string_view, 2> kMoves = {"to", "cuda"};
  CHECK(calls_method("x.to(device)", kMoves));
  CHECK(calls_method("(a + b).cuda()", kMoves));
  CHECK(calls_method("to, x.to_dense().to(device)", kMoves));
  CHECK_FALSE(calls_method("to(x)", kMoves));
  CHECK_FALSE(calls_method("x.to", kMoves));
  CHECK_FALSE(calls_method("x.to_dense()", kMoves));
  CHECK_FALSE(calls_method("x.into(y)", kMoves));
  CHECK_FALSE(calls_method("", kMoves));
}

}  // namespace
}  // namespace devsan::trace
