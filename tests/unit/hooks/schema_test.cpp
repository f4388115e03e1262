#include "hooks/inprocess/events/schema.h"

#include <catch2/catch.hpp>

namespace devsan::hooks {
namespace {

constexpr const char* kAdd = "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor";
constexpr const char* kAddOut = "add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)";
constexpr const char* kForeach = "_foreach_add_.List(Tensor(a!)[] self, Tensor[] other, *, Scalar alpha=1) -> ()";

TEST_CASE("arguments are counted without the star, and keep brackets and defaults together") {
  CHECK(argument_name(kAdd, 0) == "self");
  CHECK(argument_name(kAdd, 2) == "alpha");
  CHECK(argument_name(kAddOut, 3) == "out");
  CHECK(argument_text(kForeach, 0) == "Tensor(a!)[] self");
  CHECK(argument_text("sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False) -> Tensor", 1) == "int[1]? dim");
  CHECK(argument_text(kAdd, 7).empty());
}

TEST_CASE("what an operator computes with is read, what is marked is written") {
  CHECK(access_to(kAdd, 0) == Access::read);
  CHECK(access_to(kAdd, 1) == Access::read);
  CHECK(access_to(kAdd, 2) == Access::none);
  CHECK(access_to(kAddOut, 0) == Access::read);
  CHECK(access_to(kAddOut, 3) == Access::write);
  CHECK(access_to(kForeach, 0) == Access::write);
  CHECK(access_to(kForeach, 1) == Access::read);
  CHECK(access_to("item(Tensor self) -> Scalar", 0) == Access::read);
  CHECK(access_to("resolve_neg(Tensor(a) self) -> Tensor(a)", 0) == Access::read);
  CHECK(access_to("equal(Tensor self, Tensor other) -> bool", 1) == Access::read);
  CHECK(access_to("cat(Tensor[] tensors, int dim=0) -> Tensor", 0) == Access::read);
  CHECK(access_to("max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", 0) ==
        Access::read);
}

TEST_CASE("views, questions about a tensor, and tensors made like it touch no values") {
  CHECK(access_to("view(Tensor(a) self, SymInt[] size) -> Tensor(a)", 0) == Access::none);
  CHECK(access_to("split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]", 0) == Access::none);
  CHECK(access_to("expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", 1) == Access::none);
  CHECK(access_to("is_pinned(Tensor self, Device? device=None) -> bool", 0) == Access::none);
  CHECK(access_to("result_type.Tensor(Tensor tensor, Tensor other) -> ScalarType", 0) == Access::none);
  CHECK(access_to("empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
                  "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
                  0) == Access::none);
  CHECK(access_to("requires_grad_(Tensor(a!) self, bool requires_grad=True) -> Tensor(a!)", 0) == Access::none);
  CHECK(access_to("broadcast_tensors(Tensor[] tensors) -> Tensor[]", 0) == Access::none);
}

TEST_CASE("the copy inside a conversion is what reads") {
  constexpr const char* kTo =
      "to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, "
      "MemoryFormat? memory_format=None) -> Tensor(a)";
  CHECK(access_to(kTo, 0) == Access::none);
  CHECK(can_be_asynchronous(kTo));
  CHECK(returns_view(kTo));
  CHECK_FALSE(returns_view(kAddOut));
  CHECK_FALSE(can_be_asynchronous(kAdd));
}

}  // namespace
}  // namespace devsan::hooks
