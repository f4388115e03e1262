#!/usr/bin/env python3
"""Writes unchecked_operators.def from the native_functions.yaml that a torch wheel carries (torchgen/packaged).

Run it after a change of torch, with a Python that has torch and PyYAML, and put its output there.
"""
import pathlib

import torchgen
from torchgen.gen import parse_native_yaml
from torchgen.model import DeviceCheckType, DispatchKey


def takes_several_tensors(function):
    tensors = [a.type for a in function.func.arguments.flat_all if a.type.is_tensor_like()]
    return len(tensors) > 1 or any(t.is_list_like() for t in tensors)


def main():
    folder = pathlib.Path(torchgen.__file__).parent / "packaged/ATen/native"
    parsed = parse_native_yaml(str(folder / "native_functions.yaml"), str(folder / "tags.yaml"))
    on_cpu = parsed.backend_indices[DispatchKey.CPU]
    names = []
    for function in parsed.native_functions:
        structured = function.structured or function.structured_delegate is not None
        if function.device_check is not DeviceCheckType.NoCheck or not takes_several_tensors(function):
            continue
        if structured:
            names.append(str(function.func.name))
    print("// DEVSAN_UNCHECKED_OPERATOR(name)")
    print("// Structured operators that torch 2.13.0's native_functions.yaml exempts from the check of CUDA's wrappers")
    print("// (device_check: NoCheck): only their meta function looks at devices.")
    print("// Made by generate_unchecked_operators.py.")
    for name in sorted(names):
        print(f'DEVSAN_UNCHECKED_OPERATOR("aten::{name}")')


if __name__ == "__main__":
    main()
