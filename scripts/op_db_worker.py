"""Compares operators on a simulated CUDA device with the CPU, over the sample inputs that PyTorch tests itself with.

scripts/op_db runs several of these under `devsan run --sim 1`. Each operator and dtype gives one line of JSON on the
standard output: how many calls were compared, and what differed.
"""

import argparse
import collections
import itertools
import re
import sys
import unittest
import warnings

import torch
from torch.utils import _pytree as pytree

import devsan_simulation  # the simulation makes it when torch is imported

from op_samples import (DEVICE, HOST, SEED, Placed, Share, first_line, full_name, invocations, say_begin, say_result,
                        tensors_in)

LAYOUTS = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)

# Takes its second tensor on the CPU, on hardware too.
CPU_ARGUMENTS = {"tensor_split"}

# What these return was never written: only its shape and place can be compared.
UNWRITTEN = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}


def neutral(message):
    """An exception's message without the words for the device."""
    text = re.sub(r"cuda:0|cpu:0|cuda", "cpu", str(message), flags=re.IGNORECASE).lower().replace(", device='cpu'", "")
    return re.sub(r"0x[0-9a-f]+", "", text)


class Raised:
    def __init__(self, error):
        self.kind = type(error).__name__
        self.message = neutral(error)
        self.text = first_line(error)[:200]


STEP = 4
MASK = 2**64 - 1


def host_seed(offset):
    """The seed with which the CPU kernel draws for a simulated device's generator at this offset (sim/random.cpp)."""
    z = SEED + (offset // STEP + 1) * 0x9E3779B97F4A7C15 & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def outcome(action, seed=SEED):
    try:
        torch.manual_seed(seed)
        return action()
    except Exception as error:  # whatever the operator raises is part of the comparison
        return Raised(error)


def comparable(tensor):
    """The 8-bit floating types and half-precision complex numbers have no comparison of their own."""
    if tensor.dtype == torch.complex32:
        return torch.view_as_real(tensor)
    return tensor.view(torch.uint8) if tensor.is_floating_point() and tensor.itemsize == 1 else tensor


def same_values(device, host):
    """`equal`, `close` or what differs, for two strided CPU tensors of one shape and dtype."""
    device, host = comparable(device), comparable(host)
    if torch.equal(device, host):
        return "equal"
    if (device.isnan() & host.isnan() | (device == host)).all():
        return "equal"
    try:
        torch.testing.assert_close(device, host, equal_nan=True)
        return "close"
    except AssertionError as error:
        return "values differ: " + " ".join(str(error).split())[:160]


def parts_of(tensor):
    if tensor.layout == torch.sparse_coo:
        return tensor._indices(), tensor._values()
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    return tensor.ccol_indices(), tensor.row_indices(), tensor.values()


def compare_tensors(device, host, values):
    facts = [("dtype", lambda t: t.dtype), ("layout", lambda t: t.layout), ("shape", lambda t: t.is_nested or t.shape),
             ("requires_grad", lambda t: t.requires_grad), ("conj", lambda t: t.is_conj()), ("neg", lambda t: t.is_neg())]
    if host.layout == torch.strided and not host.is_nested:
        facts.append(("strides", lambda t: t.stride()))
    for name, fact in facts:
        if fact(device) != fact(host):
            return f"{name}: {fact(device)} instead of {fact(host)}"
    device, host = device.detach(), host.detach()
    if host.is_nested:
        return compare(list(device.unbind()), list(host.unbind()), values)
    if host.layout in LAYOUTS:
        return compare(parts_of(device), parts_of(host), values)
    if host.is_quantized:
        return compare_tensors(device.int_repr(), host.int_repr(), values)
    return same_values(device.cpu().resolve_conj().resolve_neg(), host.resolve_conj().resolve_neg()) if values else "equal"


def compare(device, host, values=True):
    """The worst of `equal`, `close` and a text, over two outcomes."""
    if isinstance(device, Raised) or isinstance(host, Raised):
        return compare_raised(device, host)
    ours, our_shape = pytree.tree_flatten(device)
    theirs, their_shape = pytree.tree_flatten(host)
    if our_shape != their_shape:
        return f"structure: {our_shape} instead of {their_shape}"
    worst = "equal"
    for one, other in zip(ours, theirs):
        told = compare_leaves(one, other, values)
        if told not in ("equal", "close"):
            return told
        worst = "close" if told == "close" else worst
    return worst


def compare_leaves(one, other, values):
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return compare_tensors(one, other, values)
    if isinstance(other, torch.device):
        return "equal"
    if type(one) is not type(other):
        return f"type: {type(one).__name__} instead of {type(other).__name__}"
    if not values or one == other or (one != one and other != other):
        return "equal"
    return f"{one} instead of {other}"[:160]


def is_assert(raised):
    """Whether the device found out what the CPU's kernel says."""
    return isinstance(raised, Raised) and raised.kind == "AcceleratorError" and "device-side assert" in raised.text


def compare_raised(device, host):
    if is_assert(device):
        devsan_simulation.restore_context()
        if isinstance(host, Raised) and host.message in device.message:
            return "equal"
    if not isinstance(device, Raised):
        return f"passed where the CPU raised {host.kind}: {host.text}"
    if not isinstance(host, Raised):
        return f"raised {device.kind}: {device.text}"
    if device.kind != host.kind:
        return f"raised {device.kind}: {device.text} instead of {host.kind}: {host.text}"
    if device.message != host.message:
        return f"message: {device.text} instead of {host.text}"
    return "equal"


def gradients(results, arguments):
    results = [r for r in tensors_in(results) if r.requires_grad]
    inputs = [a for a in tensors_in(arguments) if a.requires_grad]
    if not results or not inputs:
        return []
    generator = torch.Generator().manual_seed(1)

    def weight(result):
        if result.layout != torch.strided or result.is_nested:
            return result.detach().clone()
        values = torch.rand(result.shape, dtype=torch.float64, generator=generator).to(result.dtype)
        return values.to(result.device)

    return list(torch.autograd.grad(results, inputs, [weight(result) for result in results], allow_unused=True))


class Call:
    """One way to call an operator with one sample. `run(placed)` gives what there is to compare."""

    def __init__(self, op, sample):
        self.op = op
        self.sample = sample

    def arguments(self, placed):
        sample = self.sample
        if self.op.name in CPU_ARGUMENTS:
            return placed.all(sample.input), *Placed(HOST).all((tuple(sample.args), dict(sample.kwargs)))
        return placed.all((sample.input, tuple(sample.args), dict(sample.kwargs)))

    def forward(self, placed):
        first, args, kwargs = self.arguments(placed)
        return self.op(first, *args, **kwargs), tensors_in((first, args, kwargs))

    def gradient(self, placed):
        arguments = self.arguments(placed)
        first, args, kwargs = arguments
        result = self.op(first, *args, **kwargs)
        return result, gradients(result, arguments)

    def inplace(self, placed):
        first, args, kwargs = self.arguments(placed)
        result = self.op.inplace_variant(first, *args, **kwargs)
        return result is first, tensors_in((first, args, kwargs))

    def out(self, make_out):
        def run(placed):
            first, args, kwargs = self.arguments(placed)
            result = self.op(first, *args, **kwargs)
            out = pytree.tree_map(make_out, result)
            returned = self.op(first, *args, out=out, **kwargs)
            return returned, out

        return run


def strided_out(result):
    return torch.full_like(result, 1, memory_format=torch.contiguous_format).t().contiguous().t() \
        if result.dim() == 2 else torch.full_like(result, 1, memory_format=torch.contiguous_format)


def resized_out(result):
    return torch.empty(0, dtype=result.dtype, device=result.device)


def is_random(on_host, host):
    """Whether the CPU itself gives other numbers for other seeds."""
    return any(compare(outcome(on_host, SEED + other), host) != "equal" for other in range(1, 9))


class Comparison:
    """Counts and differences of one operator and dtype."""

    def __init__(self, op, dtype):
        self.op = op
        self.dtype = dtype
        self.calls = collections.Counter()
        self.close = collections.Counter()
        self.failed = collections.Counter()
        self.differences = {}

    def add(self, variant, run):
        self.calls[variant] += 1
        told = self.judge(run)
        if told == "equal":
            return
        if told == "close":
            self.close[variant] += 1
            return
        self.failed[variant] += 1
        self.differences.setdefault(variant, told)

    def judge(self, run):
        def on_host():
            return run(Placed(HOST))

        host = outcome(on_host)
        device = outcome(lambda: run(Placed(DEVICE)))
        values = self.op.name not in UNWRITTEN
        told = compare(device, host, values)
        if told.startswith(("values differ", "close")) and is_random(on_host, host):
            return self.judge_random(on_host, device)
        return told

    @staticmethod
    def judge_random(on_host, device):
        """One draw is that of the CPU's generator with a seed that is known; of several only the shapes are compared."""
        if compare(device, outcome(on_host, host_seed(0))) == "equal":
            return "equal"
        return compare(device, outcome(on_host), False)

    def line(self):
        return {"op": full_name(self.op), "dtype": str(self.dtype).removeprefix("torch."), "calls": dict(self.calls),
                "close": dict(self.close), "failed": dict(self.failed), "differences": self.differences}


def samples_of(op, dtype, requires_grad, limit):
    return limited(op.sample_inputs(HOST.type, dtype, requires_grad=requires_grad), limit)


def limited(samples, limit):
    return itertools.islice(samples, limit or None)


def noncontiguous(sample):
    try:
        return sample.noncontiguous()
    except Exception:  # some samples hold what cannot be copied so
        return None


def compare_samples(comparison, op, dtype, limit):
    differentiable = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    for sample in samples_of(op, dtype, False, limit):
        call = Call(op, sample)
        comparison.add("forward", call.forward)
        strided = noncontiguous(sample)
        if strided is not None:
            comparison.add("noncontiguous", Call(op, strided).forward)
        if op.inplace_variant is not None and isinstance(sample.input, torch.Tensor) and not sample.broadcasts_input:
            comparison.add("inplace", call.inplace)
        if op.supports_out:
            comparison.add("out", call.out(strided_out))
            comparison.add("out", call.out(resized_out))
    if not differentiable:
        return
    for sample in samples_of(op, dtype, True, limit):
        comparison.add("gradient", Call(op, sample).gradient)


def compare_sparse(comparison, op, dtype, limit):
    for layout in LAYOUTS:
        if not op.supports_sparse_layout(layout):
            continue
        for sample in limited(op.sample_inputs_sparse(layout, HOST.type, dtype, requires_grad=False), limit):
            comparison.add("sparse", Call(op, sample).forward)
        if not op.supports_autograd or dtype not in op.supported_backward_dtypes("cpu"):
            continue
        for sample in limited(op.sample_inputs_sparse(layout, HOST.type, dtype, requires_grad=True), limit):
            comparison.add("sparse gradient", Call(op, sample).gradient)


def compare_errors(comparison, op, dtype, limit):
    if op.error_inputs_func is None:
        return
    for error in op.error_inputs(HOST.type):
        comparison.add("error", Call(op, error.sample_input).forward)


def compare_operator(op, dtype, with_errors, limit):
    comparison = Comparison(op, dtype)
    for step in (compare_samples, compare_sparse, *([compare_errors] if with_errors else [])):
        try:
            step(comparison, op, dtype, limit)
        except (NotImplementedError, unittest.SkipTest):  # the list has no samples of this kind
            pass
        except Exception as error:  # of a generator of samples: what it gave until then was compared
            comparison.differences[step.__name__] = f"{type(error).__name__}: {error}"[:200]
            comparison.failed[step.__name__] += 1
    return comparison


def jobs(options):
    """(number, operator, dtype, whether it is the operator's first) of everything that is to be compared."""
    number = 0
    for op in sorted(invocations.op_db, key=full_name):
        if options.ops and full_name(op) not in options.ops.split(",") and op.name not in options.ops.split(","):
            continue
        dtypes = sorted(op.supported_dtypes("cpu"), key=lambda dtype: (dtype != torch.float32, str(dtype)))
        for index, dtype in enumerate(dtypes[:1] if options.first_dtype else dtypes):
            yield number, op, dtype, index == 0
            number += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", default="", help="only these operators, separated by commas")
    parser.add_argument("--first-dtype", action="store_true", help="only one dtype of each operator")
    parser.add_argument("--samples", type=int, default=0, help="at most so many samples of each operator and dtype")
    Share.add_options(parser)
    options = parser.parse_args()
    share = Share(options)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    # The random operators of the list seed the generators themselves, with a seed that would hide what is random.
    invocations.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)
    for number, op, dtype, first in jobs(options):
        if share.holds(number):
            say_begin(number + 1, op=full_name(op), dtype=str(dtype).removeprefix("torch."))
            say_result(compare_operator(op, dtype, first, options.samples).line())
    return 0


if __name__ == "__main__":
    sys.exit(main())
