"""PyTorch's own list of operators and its samples, placed on devices: what the workers of scripts/op_db and
scripts/gpu_truth share, and how they speak with scripts/op_workers.py.
"""

import json
import sys
import types
import unittest

import torch
from torch.utils import _pytree as pytree

try:
    import expecttest  # noqa: F401
except ImportError:
    # PyTorch derives its own test cases from it, beside the list. A machine that runs none does not have it.
    sys.modules["expecttest"] = types.ModuleType("expecttest")
    sys.modules["expecttest"].TestCase = unittest.TestCase

from torch.testing._internal import common_methods_invocations as invocations  # noqa: E402, F401

HOST = torch.device("cpu")
DEVICE = torch.device("cuda", 0)
SEED = 7


class Share:
    """Which operators are this process's to do, by their numbers, and where it begins among them."""

    @staticmethod
    def add_options(parser):
        parser.add_argument("--shard", default="0/1", help="I/N: only every N-th operator, from the I-th")
        parser.add_argument("--start", default="0", help="NUMBER[.CASE] to begin with")

    def __init__(self, options):
        self.index, self.shards = map(int, options.shard.split("/"))
        self.number, self.case = map(int, (options.start + ".0").split(".")[:2])

    def holds(self, number):
        return number % self.shards == self.index and number >= self.number

    def first_case(self, number):
        return self.case if number == self.number else 0


def say_begin(resume, **told):
    print(json.dumps({"begins": {**told, "resume": str(resume)}}), flush=True)


def say_result(result):
    print(json.dumps(result), flush=True)


def first_line(error):
    return str(error).strip().partition("\n")[0]


class Placed:
    """Copies of arguments on one device, with the strides, offsets and sharing of memory that the originals have."""

    def __init__(self, device):
        self.device = device
        self.storages = {}
        self.tensors = {}

    def __call__(self, value):
        if isinstance(value, torch.Tensor):
            if id(value) not in self.tensors:
                self.tensors[id(value)] = self.tensor(value), value
            return self.tensors[id(value)][0]
        if isinstance(value, torch.device) or value in ("cpu", "cuda"):
            return self.device
        return value

    def all(self, tree):
        return pytree.tree_map(lambda value: self(value) if is_placeable(value) else value, tree)

    def tensor(self, value):
        plain = value.detach()
        if plain.layout != torch.strided or plain.is_nested or plain.is_quantized or type(plain) is not torch.Tensor:
            return copy_of(plain, self.device).requires_grad_(value.requires_grad)
        if plain.is_conj():
            return self.tensor(plain.conj()).conj().requires_grad_(value.requires_grad)
        if plain.is_neg():
            return torch._neg_view(self.tensor(torch._neg_view(plain))).requires_grad_(value.requires_grad)
        placed = torch.empty(0, dtype=plain.dtype, device=self.device)
        placed.set_(self.storage(plain), plain.storage_offset(), plain.size(), plain.stride())
        return placed.requires_grad_(value.requires_grad)

    def storage(self, tensor):
        original = tensor.untyped_storage()
        if original._cdata not in self.storages:
            content = torch.empty(0, dtype=torch.uint8).set_(original)
            self.storages[original._cdata] = content.to(self.device, copy=True).untyped_storage(), original
        return self.storages[original._cdata][0]


def copy_of(tensor, device):
    return tensor.to(device) if tensor.device != device else tensor.clone()


def is_placeable(value):
    return isinstance(value, (torch.Tensor, torch.device)) or (isinstance(value, str) and value in ("cpu", "cuda"))


def full_name(op):
    return op.name + ("." + op.variant_test_name if op.variant_test_name else "")


def tensors_in(tree):
    return [value for value in pytree.tree_leaves(tree) if isinstance(value, torch.Tensor)]
