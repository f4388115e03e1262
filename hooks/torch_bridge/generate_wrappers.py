#!/usr/bin/env python3
"""Writes the list of operator wrappers for one torch, from the headers of that torch.

Every struct in ATen/ops/*_ops.h is one operator overload. Those whose `call` takes a tensor or a device get a wrapper
(operator_wrapper.h makes it from the address of `call` alone). The list is split into shards, wrappers<k>.cpp, so that
they compile side by side; the linker joins their tables (operator_table.h). The first holds the common operators.
"""
import argparse
import pathlib
import re
from typing import NamedTuple

from common_operators import COMMON

STRUCT = re.compile(r"struct TORCH_API (\w+) \{(.*?)\n\};", re.S)
CALL = re.compile(r"static (.*?) call\((.*?)\);", re.S)
OPERAND = re.compile(r"\b(Tensor|TensorList|ITensorListRef|Device|Generator|Storage)\b")
SCHEMA = re.compile(r'schema_str = "\w+(?:\.\w+)?\((.*)\) -> (.*?)";')
TENSOR = re.compile(r"\bTensor(List)?\b.*\b(\w+)$")
# What operators call the input of a module's forward, and the weights that it is put together with.
INPUTS = ("input", "data")
WEIGHTS = ("weight", "w_ih", "params")


def weight_of(parameters):
    """Which parameter is the weight of a module, -1 where there is none. Losses have weights too, but no `input`."""
    tensors = [(place, TENSOR.search(parameter)) for place, parameter in enumerate(parameters.split(", "))]
    names = [(place, tensor[2]) for place, tensor in tensors if tensor]
    if not names or names[0][1] not in INPUTS:
        return -1
    return next((place for place, name in names if name in WEIGHTS), -1)


def only_views(schema):
    """Whether the operator takes one tensor and returns views of it, or that itself where nothing is to be done: it can
    neither meet another device nor make a value by itself. What it calls to copy is an operator of its own."""
    if not schema or schema[2] not in ("Tensor(a)", "Tensor(a)[]"):
        return False
    parameters = schema[1].split(", ")
    tensors = [parameter for parameter in parameters if parameter.startswith("Tensor")]
    told = any(kind in schema[1] for kind in ("ScalarType", "Device", "MemoryFormat"))
    return len(tensors) == 1 and tensors[0].startswith(("Tensor(a) ", "Tensor(a -> *) ")) and not told


class Operator(NamedTuple):
    name: str
    weight: int
    only_views: bool


def operators(include):
    """The operator structs that take a tensor or a device, in a fixed order."""
    found = []
    for path in sorted((include / "ATen" / "ops").glob("*_ops.h")):
        for name, body in STRUCT.findall(path.read_text(encoding="utf-8")):
            call = CALL.search(body)
            if call and OPERAND.search(call[2]):
                found.append(Operator(name, weight_of(call[2]), only_views(SCHEMA.search(body))))
    return found


def shard_source(operators, first_id):
    entries = "\n".join(f"DEVSAN_OPERATOR({one.name}, {first_id + k}, {one.weight}, {int(one.only_views)})"
                        for k, one in enumerate(operators))
    return f"""#include "hooks/torch_bridge/operator_wrapper.h"

namespace devsan::hooks {{

namespace {{

// torch calls those that only make views inside its others all the time.
#define DEVSAN_OPERATOR(op, id, weight, only_views)                                   \\
  {{.real = reinterpret_cast<void*>(&at::_ops::op::call),                              \\
   .wrapper = reinterpret_cast<void*>(&Wrapper<&at::_ops::op::call, id, weight>::Begin::entry), \\
   .on_demand = only_views}},
DEVSAN_REPLACEMENTS const Replacement replacements[] = {{
{entries}
}};
#undef DEVSAN_OPERATOR

#define DEVSAN_OPERATOR(op, id, weight, only_views) {{at::_ops::op::name, at::_ops::op::overload_name, at::_ops::op::schema_str, id}},
DEVSAN_OPERATOR_TEXTS const OperatorText texts[] = {{
{entries}
}};
#undef DEVSAN_OPERATOR

}}  // namespace

}}  // namespace devsan::hooks
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--include", required=True, type=pathlib.Path, help="torch's include directory")
    parser.add_argument("--out", required=True, type=pathlib.Path, help="directory for the sources")
    parser.add_argument("--shards", type=int, default=4)
    options = parser.parse_args()
    found = operators(options.include)
    if not found:
        parser.error(f"no operators under {options.include}/ATen/ops: is this torch's include directory?")
    options.out.mkdir(parents=True, exist_ok=True)
    common = [operator for operator in found if operator.name in COMMON]
    others = [operator for operator in found if operator.name not in COMMON]
    size = max(-(-len(others) // options.shards), 1)
    first_id = 1  # as the trace counts
    for k, shard in enumerate([common, *(others[first:first + size] for first in range(0, len(others), size))]):
        (options.out / f"wrappers{k}.cpp").write_text(shard_source(shard, first_id), encoding="utf-8")
        first_id += len(shard)
    print(f"{len(found)} operators")


if __name__ == "__main__":
    main()
