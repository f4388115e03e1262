#include "report/slice/torch_names.h"

#include <algorithm>
#include <array>
#include <string>

#include "report/program/expressions.h"
#include "report/program/functions.h"

namespace devsan::report::slice {
namespace {

constexpr auto kMakers = std::to_array<std::string_view>({
    "zeros",
    "ones",
    "empty",
    "full",
    "tensor",
    "arange",
    "linspace",
    "rand",
    "randn",
    "randint",
    "eye",
    "as_tensor",
    "from_numpy",
    "randperm",
    "logspace",
    "scalar_tensor",
    "Tensor",
    "FloatTensor",
    "LongTensor",
    "BoolTensor",
    "IntTensor",
    "load",
    "frombuffer",
    "Generator",
    "hann_window",
    "full_like",
    "zeros_like",
    "ones_like",
    "empty_like",
    "rand_like",
    "randn_like",
    "randint_like",
    "new_zeros",
    "new_ones",
    "new_tensor",
    "new_full",
    "new_empty",
    "tril_indices",
    "triu_indices",
    "normal",
    "Parameter",
    "asarray",
    "bartlett_window",
    "hamming_window",
    "blackman_window",
    "kaiser_window",
    "sparse_coo_tensor",
    "load_file",
    "Categorical",
    "Normal",
    "Buffer",
    "default_generator",
});

}  // namespace

bool makes_tensor(std::string_view name) {
  return is_one_of(kMakers, name);
}

bool makes_alike(std::string_view name) {
  return name.ends_with("_like") || name.starts_with("new_");
}

bool wraps_tensor(std::string_view name) {
  return name == "Parameter" || name == "Buffer";
}

bool makes_from_argument(std::string_view name) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"as_tensor", "full", "from_numpy", "Categorical", "Normal", "asarray", "tensor", "Parameter", "Buffer"});
  return name.ends_with("_like") || is_one_of(kNames, name);
}

bool moves(std::string_view name) {
  constexpr auto kNames =
      std::to_array<std::string_view>({"to", "cuda", "cpu", "numpy", "type", "pin_memory", "to_empty", "type_as",
                                       "to_device", "send_to_device", "tolist", "_apply"});
  return is_one_of(kNames, name);
}

bool moves_object(std::string_view name) {
  constexpr auto kNames = std::to_array<std::string_view>({"to", "cuda", "cpu", "to_empty"});
  return is_one_of(kNames, name);
}

bool fills_container(std::string_view name) {
  constexpr auto kNames =
      std::to_array<std::string_view>({"append", "extend", "add", "insert", "update", "setdefault", "put", "appendleft",
                                       "push", "store", "copy_", "put_nowait", "__setitem__"});
  return is_one_of(kNames, name);
}

bool registers_hook(std::string_view name) {
  return name.starts_with("register_") && name.ends_with("_hook");
}

bool registers_member(std::string_view name) {
  constexpr auto kNames =
      std::to_array<std::string_view>({"register_buffer", "register_parameter", "setattr", "add_module",
                                       "register_module", "__setattr__", "add_state", "_replace", "replace"});
  return is_one_of(kNames, name);
}

bool sets_default_device(std::string_view name) {
  constexpr auto kNames =
      std::to_array<std::string_view>({"set_default_device", "set_default_tensor_type", "set_device"});
  return is_one_of(kNames, name);
}

bool loads_state(std::string_view name) {
  constexpr auto kNames = std::to_array<std::string_view>({"load_state_dict", "restore", "add_param_group"});
  return is_one_of(kNames, name);
}

bool is_optimizer(std::string_view name) {
  constexpr auto kNames = std::to_array<std::string_view>({"SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "LBFGS"});
  return is_one_of(kNames, name);
}

bool is_tensor_method(std::string_view name) {
  constexpr auto kNames = std::to_array<std::string_view>({
      "view",   "reshape", "permute", "transpose",    "sum",        "mean",     "size",      "float",   "long",
      "half",   "double",  "clone",   "detach",       "contiguous", "expand",   "unsqueeze", "squeeze", "flatten",
      "matmul", "add",     "mul",     "sub",          "div",        "copy_",    "add_",      "mul_",    "softmax",
      "max",    "min",     "argmax",  "index_select", "gather",     "scatter_", "items",     "keys",    "values",
      "get",    "append",  "extend",  "pop",          "update",
  });
  return is_one_of(kNames, name);
}

bool gives_number(std::string_view name) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"size", "len", "range", "isinstance", "dim", "numel", "is_tensor", "print", "int", "str", "float", "hasattr"});
  return is_one_of(kNames, name);
}

bool is_tensor_attribute(std::string_view name) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"device", "data", "T", "grad", "shape", "weight", "bias", "mT", "real", "imag", "values", "indices", "state"});
  return is_one_of(kNames, name);
}

bool makes_layer(program::Node callee) {
  const std::string name = program::dotted_name(callee);
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot + 1 >= name.size()) return false;
  const char first = name[dot + 1];
  const std::string module = name.substr(0, dot);
  return first >= 'A' && first <= 'Z' && (module == "nn" || module == "torch.nn" || module.ends_with(".nn"));
}

}  // namespace devsan::report::slice
