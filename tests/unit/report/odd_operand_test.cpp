// Which operand is called odd. Each case is a meeting that people really run into.
#include "trace/odd_operand.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace devsan::trace {
namespace {

struct Sketch {
  std::string argument;
  std::string device;
  int dims = 2;
  NameKind is = NameKind::local;
  std::uint8_t flags = 0;
};

// The arguments that are odd, in order.
std::vector<std::string> odd_of(std::string_view op, const std::vector<Sketch>& sketches,
                                std::string_view message = "") {
  std::vector<std::string> devices = {""};
  std::vector<OperandRecord> records;
  for (std::size_t i = 0; i < sketches.size(); ++i) {
    const Sketch& sketch = sketches[i];
    auto slot = std::find(devices.begin(), devices.end(), sketch.device) - devices.begin();
    if (slot == static_cast<std::ptrdiff_t>(devices.size())) devices.push_back(sketch.device);
    OperandRecord& record = records.emplace_back();
    record = {};
    record.argument = StringId(i);
    record.device = DeviceSlot(slot);
    record.dims = static_cast<std::uint8_t>(sketch.dims);
    record.name_kind = sketch.is;
    record.flags = sketch.flags;
  }
  const OddOperands verdict(
      op, message, records,
      [&](StringId id) { return std::string_view(sketches[static_cast<std::size_t>(id)].argument); },
      [&](DeviceSlot slot) { return std::string_view(devices[static_cast<std::size_t>(slot)]); });
  std::vector<std::string> odd;
  for (std::size_t i = 0; i < sketches.size(); ++i) {
    if (verdict.odd(records[i])) odd.push_back(sketches[i].argument);
  }
  return odd;
}

using Odd = std::vector<std::string>;
constexpr auto kWeight = NameKind::parameter;

TEST_CASE("An argument that a message wants on the host is odd though all operands are on one device") {
  constexpr auto kLengths = "'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor";
  CHECK(odd_of("aten::_pack_padded_sequence", {{"input", "cuda:0"}, {"lengths", "cuda:0"}}, kLengths) ==
        Odd{"lengths"});
  constexpr auto kSplit = "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on cuda:0";
  const std::vector<Sketch> split = {{"self", "cuda:0"}, {"tensor_indices_or_sections", "cuda:0"}};
  CHECK(odd_of("aten::tensor_split", split, kSplit) == Odd{"tensor_indices_or_sections"});
  // Of another type, and where it should be.
  constexpr auto kFloat = "'lengths' argument should be a 1D CPU int64 tensor, but got 1D cpu Float tensor";
  CHECK_FALSE(wants_host(kFloat));
  CHECK_FALSE(wants_host("expected a CUDA tensor on cuda:0 as CPU tensors are slow, but got cuda:1"));
}

TEST_CASE("What NumPy refuses is odd, and of a gradient and its parameter the gradient") {
  CHECK(odd_of("", {{"self", "cuda:0"}, {"numpy", "cpu", 0, NameKind::unknown, kDeviceArgument}},
               "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy it first.") == Odd{"self"});
  CHECK(odd_of("", {{"self", "cpu"}, {"grad", "cuda:0"}},
               "attempting to assign a gradient with device type 'cuda' to a tensor with device type 'cpu'") ==
        Odd{"grad"});
}

TEST_CASE("Of two accelerators that are otherwise equal, the one is wanted where the function was given everything") {
  CHECK(odd_of("aten::mul.Tensor", {{"self", "cuda:1"}, {"other", "cuda:0", 2, NameKind::local, kAtHome}}) ==
        Odd{"self"});
  CHECK(odd_of("aten::mul.Tensor",
               {{"self", "cuda:1", 2, kWeight}, {"other", "cuda:0", 2, NameKind::local, kAtHome}}) == Odd{"other"});
}

TEST_CASE("A tensor left on the CPU is odd, whichever operand it is") {
  CHECK(odd_of("aten::add.Tensor", {{"self", "cuda:0"}, {"other", "cpu"}}) == Odd{"other"});
  CHECK(odd_of("aten::add.Tensor", {{"self", "cpu"}, {"other", "cuda:0"}}) == Odd{"self"});
  CHECK(odd_of("aten::gather", {{"self", "cuda:0"}, {"index", "cpu"}}) == Odd{"index"});
}

TEST_CASE("Module weights on the CPU are odd although they outnumber the input") {
  CHECK(odd_of("aten::linear", {{"input", "cuda:0"}, {"weight", "cpu", 2, kWeight}, {"bias", "cpu", 1, kWeight}}) ==
        Odd{"weight", "bias"});
}

TEST_CASE("An input on the CPU is odd beside weights that were moved") {
  CHECK(odd_of("aten::linear", {{"input", "cpu"}, {"weight", "cuda:0", 2, kWeight}, {"bias", "cuda:0", 1, kWeight}}) ==
        Odd{"input"});
}

TEST_CASE("A scalar on an accelerator is odd in an operator in place on a CPU tensor") {
  CHECK(odd_of("aten::mul_.Tensor", {{"self", "cpu", 1}, {"other", "cuda:0", 0}}) == Odd{"other"});
  CHECK(odd_of("aten::mul_.Tensor", {{"self", "cpu", 1}, {"other", "cuda:0", 0, NameKind::temporary}}) == Odd{"other"});
  CHECK(odd_of("aten::add_.Tensor", {{"self", "cpu", 0}, {"other", "cuda:0", 0}}) == Odd{"other"});
  CHECK(odd_of("aten::_foreach_mul_.Tensor", {{"self[0]", "cpu", 1}, {"self[1]", "cpu", 2}, {"other", "cuda:0", 0}}) ==
        Odd{"other"});
  CHECK(odd_of("aten::__iand__.Tensor", {{"self", "cpu", 1}, {"other", "cuda:0", 0}}) == Odd{"other"});
}

TEST_CASE("A CPU tensor changed in place is odd when it takes in more than a number") {
  CHECK(odd_of("aten::lerp_.Scalar", {{"self", "cpu"}, {"end", "cuda:0"}}) == Odd{"self"});
  CHECK(odd_of("aten::addcmul_", {{"self", "cpu", 1}, {"tensor1", "cuda:0", 1}, {"tensor2", "cuda:0", 0}}) ==
        Odd{"self"});
}

TEST_CASE("A scalar parameter on an accelerator was moved on purpose, so the CPU tensor changed in place is odd") {
  CHECK(odd_of("aten::mul_.Tensor", {{"self", "cpu", 2}, {"other", "cuda:0", 0, kWeight}}) == Odd{"self"});
}

TEST_CASE("Out of place, a CPU tensor is odd beside a scalar on an accelerator") {
  CHECK(odd_of("aten::add.Tensor", {{"self", "cuda:0", 0}, {"other", "cpu", 1}}) == Odd{"other"});
  CHECK(odd_of("aten::__and__.Tensor", {{"self", "cpu", 1}, {"other", "cuda:0", 0}}) == Odd{"self"});
}

TEST_CASE("Numbers and CPU scalars that PyTorch takes anywhere are not odd while others disagree") {
  CHECK(odd_of("aten::where.self", {{"condition", "cuda:0"}, {"self", "cpu"}, {"other", "cpu", 0}}) == Odd{"self"});
  CHECK(odd_of("aten::add.Tensor", {{"self", "cuda:0"}, {"other", "cpu", 0, NameKind::unknown, kWrappedNumber}}) ==
        Odd{});
}

TEST_CASE("CPU scalars are odd where they are all that differs") {
  CHECK(odd_of("aten::stack", {{"tensors[0]", "cpu", 0}, {"tensors[1]", "cuda:0", 0}}) == Odd{"tensors[0]"});
  CHECK(odd_of("aten::mul.Tensor", {{"self", "cuda:0"}, {"other", "cpu", 0}}) == Odd{"other"});
}

TEST_CASE("The minority is odd in a list, whatever its device") {
  CHECK(odd_of("aten::cat", {{"tensors[0]", "cpu"}, {"tensors[1]", "cuda:0"}, {"tensors[2]", "cpu"}}) ==
        Odd{"tensors[1]"});
  CHECK(odd_of("aten::cat", {{"tensors[0]", "cuda:0"}, {"tensors[1]", "cuda:0"}, {"tensors[2]", "cpu"}}) ==
        Odd{"tensors[2]"});
  CHECK(odd_of("aten::cat", {{"tensors[0]", "cuda:0"}, {"tensors[1]", "cpu"}}) == Odd{"tensors[1]"});
}

TEST_CASE("Lists of several arguments are no peers: optimizer state on the CPU is odd though it is the majority") {
  CHECK(odd_of("aten::_foreach_addcdiv_.Scalar", {{"self[0]", "cuda:0"},
                                                  {"self[1]", "cuda:0"},
                                                  {"tensor1[0]", "cpu"},
                                                  {"tensor1[1]", "cpu"},
                                                  {"tensor2[0]", "cpu"},
                                                  {"tensor2[1]", "cpu"}}) ==
        Odd{"tensor1[0]", "tensor1[1]", "tensor2[0]", "tensor2[1]"});
}

TEST_CASE("A table on the CPU is odd when indices on an accelerator meet it, however many they are") {
  CHECK(odd_of("aten::index.Tensor", {{"self", "cpu"}, {"indices[0]", "cuda:0", 1}}) == Odd{"self"});
  CHECK(odd_of("aten::index.Tensor", {{"self", "cpu"}, {"indices[0]", "cuda:0", 1}, {"indices[1]", "cuda:0", 1}}) ==
        Odd{"self"});
}

TEST_CASE("A generator elsewhere is odd, and nothing else is") {
  const auto generator = [](std::string device) {
    return Sketch{"generator", std::move(device), 0, NameKind::local, kGenerator};
  };
  CHECK(odd_of("aten::normal_", {{"self", "cuda:0"}, generator("cpu")}) == Odd{"generator"});
  CHECK(odd_of("aten::normal_", {{"self", "cpu"}, generator("cuda:0")}) == Odd{"generator"});
  CHECK(odd_of("aten::randn.generator",
               {generator("cpu"), {"device", "cuda:0", 0, NameKind::unknown, kDeviceArgument}}) == Odd{"generator"});
  CHECK(odd_of("aten::randn.generator", {generator("cuda:0")}) == Odd{"generator"});
  CHECK(odd_of("aten::normal_", {{"self", "cuda:0"}, generator("cuda:0")}) == Odd{});
}

TEST_CASE("A device argument says what is wanted") {
  CHECK(odd_of("aten::tensor", {{"self", "cuda:0"}, {"device", "cpu", 0, NameKind::unknown, kDeviceArgument}}) ==
        Odd{"self"});
}

TEST_CASE("Among accelerators the minority is odd, and of equals the one without weights") {
  CHECK(odd_of("aten::addmm", {{"self", "cuda:1", 1, kWeight}, {"mat1", "cuda:0"}, {"mat2", "cuda:1", 2, kWeight}}) ==
        Odd{"mat1"});
  CHECK(odd_of("aten::embedding", {{"weight", "cuda:0", 2, kWeight}, {"indices", "cuda:1", 1}}) == Odd{"indices"});
  CHECK(odd_of("aten::mul.Tensor", {{"self", "cuda:1"}, {"other", "cuda:0", 2, kWeight}}) == Odd{"self"});
}

TEST_CASE("Labels go to what was computed, also where the function was given everything else beside them") {
  CHECK(odd_of("aten::cross_entropy_loss", {{"self", "cuda:1"}, {"target", "cuda:0"}}) == Odd{"target"});
  CHECK(odd_of("aten::mse_loss", {{"self", "cuda:1"}, {"target", "cuda:0", 2, NameKind::local, kAtHome}}) ==
        Odd{"target"});
  // Weighted by class: those were moved with the criterion.
  CHECK(odd_of("aten::nll_loss", {{"self", "cuda:1"}, {"target", "cuda:0"}, {"weight", "cuda:0", 1, kWeight}}) ==
        Odd{"self"});
}

TEST_CASE("Between equal accelerators the target in place settles it, or else the first operand") {
  CHECK(odd_of("aten::add_.Tensor", {{"self", "cuda:1"}, {"other", "cuda:0"}}) == Odd{"other"});
  CHECK(odd_of("aten::add.Tensor", {{"self", "cuda:0"}, {"other", "cuda:1"}}) == Odd{"other"});
}

TEST_CASE("Everything that is not on the accelerator is odd where three devices meet") {
  CHECK(odd_of("aten::cat", {{"self", "cpu"}, {"other", "cuda:1"}, {"third", "cuda:1"}, {"fourth", "cuda:0"}}) ==
        Odd{"self", "fourth"});
}

TEST_CASE("Weights that were never given memory are odd") {
  CHECK(odd_of("aten::linear", {{"input", "cpu"}, {"weight", "meta", 2, kWeight}}) == Odd{"weight"});
}

TEST_CASE("Nothing is odd on one device, without operands, or without devices") {
  CHECK(odd_of("aten::add.Tensor", {{"self", "cpu"}, {"other", "cpu"}}) == Odd{});
  CHECK(odd_of("aten::add.Tensor", {}) == Odd{});
  CHECK(odd_of("aten::add.Tensor", {{"self", ""}, {"other", ""}}) == Odd{});
}

TEST_CASE("An index on the CPU is not odd where what it indexes is on an accelerator") {
  CHECK(odd_of("aten::index_put_",
               {{"self", "cuda:0"}, {"indices[0]", "cpu", 1}, {"indices[1]", "cuda:0", 1}, {"values", "cpu", 1}}) ==
        Odd{"values"});
  CHECK(odd_of("aten::index.Tensor", {{"self", "cuda:0"}, {"indices[0]", "cpu", 1}, {"indices[1]", "cuda:1", 1}}) ==
        Odd{"indices[1]"});
  // A tensor on the CPU takes none from an accelerator.
  CHECK(odd_of("aten::index.Tensor", {{"self", "cpu"}, {"indices[0]", "cuda:0", 1}}) == Odd{"self"});
}

}  // namespace
}  // namespace devsan::trace
