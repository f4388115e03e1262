#!/usr/bin/env python3
"""Writes the list of operator wrappers for one torch, from the headers of that torch.

Every struct in ATen/ops/*_ops.h is one operator overload. Those whose `call` takes a tensor or a device get a wrapper
(operator_wrapper.h makes it from the address of `call` alone). The list is split into shards, wrappers<k>.cpp, so that
they compile side by side; the linker joins their tables (operator_table.h).
"""
import argparse
import pathlib
import re

STRUCT = re.compile(r"struct TORCH_API (\w+) \{(.*?)\n\};", re.S)
CALL = re.compile(r"static (.*?) call\((.*?)\);", re.S)
OPERAND = re.compile(r"\b(Tensor|TensorList|ITensorListRef|Device|Generator|Storage)\b")


def operators(include):
    """Names of the operator structs that take a tensor or a device, in a fixed order."""
    names = []
    for path in sorted((include / "ATen" / "ops").glob("*_ops.h")):
        for name, body in STRUCT.findall(path.read_text(encoding="utf-8")):
            call = CALL.search(body)
            if call and OPERAND.search(call[2]):
                names.append(name)
    return names


def shard_source(names, first_id):
    entries = "\n".join(f"DEVSAN_OPERATOR({name}, {first_id + k})" for k, name in enumerate(names))
    return f"""#include "hooks/operator_wrapper.h"

namespace devsan::hooks {{

namespace {{

#define DEVSAN_OPERATOR(op, id)                                                       \\
  {{reinterpret_cast<void*>(&at::_ops::op::call),                                      \\
   reinterpret_cast<void*>(&Wrapper<&at::_ops::op::call, id>::call)}},
DEVSAN_REPLACEMENTS const Replacement replacements[] = {{
{entries}
}};
#undef DEVSAN_OPERATOR

#define DEVSAN_OPERATOR(op, id) {{at::_ops::op::name, at::_ops::op::overload_name, at::_ops::op::schema_str, id}},
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
    names = operators(options.include)
    if not names:
        parser.error(f"no operators under {options.include}/ATen/ops: is this torch's include directory?")
    options.out.mkdir(parents=True, exist_ok=True)
    size = -(-len(names) // options.shards)
    for k in range(options.shards):
        first = k * size
        # Ids count from 1, as the trace's do.
        source = shard_source(names[first:first + size], first + 1)
        (options.out / f"wrappers{k}.cpp").write_text(source, encoding="utf-8")
    print(f"{len(names)} operators")


if __name__ == "__main__":
    main()
