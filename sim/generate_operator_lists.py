#!/usr/bin/env python3
"""Writes the lists of operators that follow from native_functions.yaml, which a torch wheel carries in torchgen.

    generate_operator_lists.py unchecked > unchecked_operators.def
    generate_operator_lists.py kernels > kernel_presence.def

Run it after a change of torch, with a Python that has torch and PyYAML. What a release of torch lacks does no harm in a
list, so that of the newest serves all.
"""
import pathlib
import sys

import torch
import torchgen
from torchgen.gen import parse_native_yaml
from torchgen.model import DeviceCheckType, DispatchKey

KEYS = {
    "CUDA": (DispatchKey.CPU, DispatchKey.CUDA),
    "SparseCUDA": (DispatchKey.SparseCPU, DispatchKey.SparseCUDA),
    "SparseCsrCUDA": (DispatchKey.SparseCsrCPU, DispatchKey.SparseCsrCUDA),
    "NestedTensorCUDA": (DispatchKey.NestedTensorCPU, DispatchKey.NestedTensorCUDA),
    "QuantizedCUDA": (DispatchKey.QuantizedCPU, DispatchKey.QuantizedCUDA),
}

# Kernels of the CPU that are there to make tensors of other devices.
FOR_OTHER_DEVICES = ("_empty_affine_quantized", "_empty_per_channel_affine_quantized")


class Operators:
    def __init__(self):
        folder = pathlib.Path(torchgen.__file__).parent / "packaged/ATen/native"
        parsed = parse_native_yaml(str(folder / "native_functions.yaml"), str(folder / "tags.yaml"))
        self.kernels = parsed.backend_indices
        self.all = {str(function.func.name): function for function in parsed.native_functions}

    def structured(self, function):
        """The function that holds an operator's meta function; None where there is none."""
        if function.structured_delegate is not None:
            return self.all[str(function.structured_delegate)]
        return function if function.structured else None

    def has_kernel(self, key, function):
        return self.kernels[key].has_kernel(self.structured(function) or function)


def is_composite(function):
    return (function.has_composite_explicit_autograd_kernel or function.has_composite_implicit_autograd_kernel
            or function.has_composite_explicit_autograd_non_functional_kernel)


def takes_several_tensors(function):
    tensors = [a.type for a in function.func.arguments.flat_all if a.type.is_tensor_like()]
    return len(tensors) > 1 or any(t.is_list_like() for t in tensors)


UNCHECKED = """// DEVSAN_UNCHECKED_OPERATOR(name, meta)
// Structured operators that torch {release}'s native_functions.yaml exempts from the check of CUDA's wrappers
// (device_check: NoCheck): only their meta function looks at devices. `iterator` is one that makes a TensorIterator;
// `outputs` compares given outputs with the device that they would be made on.
// Made by generate_operator_lists.py."""

KERNELS = """// Kernels that torch has for one of CPU and CUDA alone, or for CUDA in another way than by a kernel of its own, from
// torch {release}'s native_functions.yaml. Made by generate_operator_lists.py.
//
//   DEVSAN_ABSENT_KERNEL(name, key)      the CPU has one, CUDA has none
//   DEVSAN_COMPOSITE_KERNEL(name)        the CPU has its own, CUDA takes the composite one
//   DEVSAN_CHECKED_COMPOSITE(name)       CUDA has its own, whose wrapper checks devices; the CPU takes the composite"""


def unchecked(operators):
    for name, function in sorted(operators.all.items()):
        structured = operators.structured(function)
        is_checked = function.device_check is not DeviceCheckType.NoCheck
        if structured is None or is_checked or not takes_several_tensors(function):
            continue
        meta = "iterator" if structured.structured_inherits == "TensorIteratorBase" else "outputs"
        yield f'DEVSAN_UNCHECKED_OPERATOR("aten::{name}", {meta})'


def of_host_alone(name, function, key):
    if name.partition(".")[0] in FOR_OTHER_DEVICES:
        return
    if not is_composite(function):
        yield f'DEVSAN_ABSENT_KERNEL("aten::{name}", {key})'
    elif key == "CUDA" and not function.has_composite_implicit_autograd_kernel:
        yield f'DEVSAN_COMPOSITE_KERNEL("aten::{name}")'


def of_device_alone(name, function, key):
    if key == "CUDA" and is_composite(function) and function.device_check is not DeviceCheckType.NoCheck:
        yield f'DEVSAN_CHECKED_COMPOSITE("aten::{name}")'


def kernels(operators):
    for key, (host, device) in KEYS.items():
        for name, function in sorted(operators.all.items()):
            on_host, on_device = operators.has_kernel(host, function), operators.has_kernel(device, function)
            if on_host and not on_device:
                yield from of_host_alone(name, function, key)
            elif on_device and not on_host:
                yield from of_device_alone(name, function, key)


LISTS = {"unchecked": (UNCHECKED, unchecked), "kernels": (KERNELS, kernels)}


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in LISTS:
        sys.exit(__doc__)
    title, lines = LISTS[sys.argv[1]]
    print("\n".join([title.format(release=torch.__version__.partition("+")[0]), *lines(Operators())]))


if __name__ == "__main__":
    main()
