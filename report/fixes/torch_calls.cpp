#include "report/fixes/torch_calls.h"

#include <algorithm>
#include <array>
#include <string>

#include "report/program/functions.h"
#include "report/slice/file_index.h"
#include "report/slice/torch_names.h"

namespace devsan::report::fixes {

using program::CallParts;
using program::Kind;
using program::Node;

namespace {

constexpr auto kFactories = std::to_array<std::string_view>({
    "arange",
    "as_tensor",
    "asarray",
    "bartlett_window",
    "blackman_window",
    "empty",
    "empty_like",
    "empty_strided",
    "eye",
    "full",
    "full_like",
    "hamming_window",
    "hann_window",
    "kaiser_window",
    "linspace",
    "logspace",
    "normal",
    "ones",
    "ones_like",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "range",
    "scalar_tensor",
    "sparse_coo_tensor",
    "tensor",
    "tril_indices",
    "triu_indices",
    "zeros",
    "zeros_like",
    "Generator",
    "sparse_csr_tensor",
    "fft.fftfreq",
    "fft.rfftfreq",
});

constexpr auto kNewFactories =
    std::to_array<std::string_view>({"new_empty", "new_full", "new_ones", "new_tensor", "new_zeros"});

bool is_factory(const CallParts& call) {
  constexpr std::string_view kTorch = "torch.";
  const std::string origin = program::origin_of(call.callee);
  return origin.starts_with(kTorch) && slice::is_one_of(kFactories, std::string_view(origin).substr(kTorch.size()));
}

// `torch.float16`, `x.dtype`, `dtype`, another tensor's name is none.
bool is_dtype(Node value) {
  const std::string_view name =
      value.is(Kind::Attribute) ? value.child(program::Field::Attribute).text() : value.text();
  constexpr auto kTypes =
      std::to_array<std::string_view>({"float", "float16", "float32", "float64", "half", "double", "bfloat16", "long",
                                       "int", "int8", "int16", "int32", "int64", "uint8", "bool", "dtype"});
  return slice::is_one_of(kTypes, name) || name.ends_with("_dtype");
}

}  // namespace

std::string_view device_argument_of(const CallParts& call) {
  if (!call || call.has_double_star) return "";
  if (program::origin_of(call.callee) == "torch.load") return "map_location";
  return is_factory(call) || slice::is_one_of(kNewFactories, call.method()) ? "device" : "";
}

bool makes_like_another(const CallParts& call) {
  return slice::is_one_of(kNewFactories, call.method()) ||
         (is_factory(call) && slice::called_name(call.call).ends_with("_like"));
}

bool is_move(const CallParts& call) {
  return call.receiver() && (call.method() == "to" || call.method() == "cuda" || call.method() == "cpu");
}

Node device_of_move(const CallParts& call) {
  if (call.method() == "cuda") return call.argument("device", 0);
  if (call.method() != "to" || call.has_star) return {};
  if (const Node given = call.keyword("device")) return given;
  return call.positional.empty() || is_dtype(call.positional.front()) ? Node() : call.positional.front();
}

bool makes_layer(const CallParts& call) {
  const std::string origin = program::origin_of(call.callee);
  constexpr std::string_view kModule = "torch.nn.";
  return origin.starts_with(kModule) && origin.size() > kModule.size() && origin[kModule.size()] >= 'A' &&
         origin[kModule.size()] <= 'Z' && origin.find('.', kModule.size()) == std::string::npos &&
         !slice::wraps_tensor(slice::called_name(call.call));
}

}  // namespace devsan::report::fixes
