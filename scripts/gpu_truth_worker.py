"""Calls operators with one operand elsewhere than the others, and says what PyTorch answers.

scripts/gpu_truth runs several of these. With --describe it says which torch and devices there are, otherwise each case
gives one line of JSON on the standard output. A case is one call: a sample of the operator, all of its tensors on cuda:0
(told as `all`, `inplace all`, `out` and `generator`, by the way of calling), or one operand moved, or replaced by its
first element there. `X` is an operand as it is on device X, `X()` a 0-dim tensor and `X(1)` one of a single element;
those on cuda:0 tell errors of shape from errors of device.
"""

import argparse
import json
import os
import random
import re
import sys
import warnings

import numpy
import torch
from torch.utils import _pytree as pytree

import op_samples
from op_samples import DEVICE, HOST, SEED, Placed, Share, first_line, full_name, say_begin, say_result, tensors_in

# The exit status of a process whose CUDA context an operator broke: nothing runs in it any more.
BROKEN = 3

LONGEST_MESSAGE = 300


def devices():
    return [torch.device("cuda", index) for index in range(min(2, torch.cuda.device_count()))]


def describe():
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return {"torch": torch.__version__, "cuda": torch.version.cuda, "devices": names,
            "simulated": "devsan_simulation" in sys.modules}


def seed_all():
    torch.manual_seed(SEED)
    numpy.random.seed(SEED)
    random.seed(SEED)


# ---- the arguments of a call, and what can be done to one of them

class Arguments:
    """A sample's input, args and kwargs: `leaves` on the CPU, and which of them are operands."""

    def __init__(self, *tree):
        paths, self.spec = pytree.tree_flatten_with_path(tree)
        self.leaves = [leaf for _, leaf in paths]
        self.operands = {}
        lists = {}
        for index, (path, leaf) in enumerate(paths):
            if isinstance(leaf, (torch.Tensor, torch.Generator)):
                depth = 1 if path[0].idx == 0 else 2
                name = "input" if path[0].idx == 0 else key_of(path[1]) if path[0].idx == 2 else f"args[{path[1].idx}]"
                lists.setdefault((name, path[depth:-1]), []).append((index, path[depth:]))
        for (name, _), entries in lists.items():
            for index, rest in entries[:1] + entries[1:][-1:]:  # of many the first and the last
                self.operands[name + "".join(f"[{key_of(key)}]" for key in rest)] = index
        self.form = " ".join(f"{name}{'[]' if entries[0][1] else ''}:" + ",".join(
            form_of(self.leaves[index]) for index, _ in entries) for (name, _), entries in lists.items()) or "-"

    def placed(self, moved=None, value=None):
        """The arguments on cuda:0, the leaf `moved` replaced by `value`."""
        on_device = Placed(DEVICE)
        leaves = [place(leaf, on_device) for leaf in self.leaves]
        if moved is not None:
            leaves[moved] = value
        return pytree.tree_unflatten(leaves, self.spec)


def key_of(key):
    """How a list, a dictionary or a named tuple calls an entry."""
    return str(next(getattr(key, kind) for kind in ("idx", "key", "name") if hasattr(key, kind)))


def place(leaf, placed):
    if isinstance(leaf, torch.Generator):
        return torch.Generator(placed.device).manual_seed(SEED)
    return placed(leaf) if op_samples.is_placeable(leaf) else leaf


def form_of(leaf):
    """What tells samples apart: the number of dimensions, and the layout unless it is the usual one."""
    if isinstance(leaf, torch.Generator):
        return "-"
    if leaf.is_nested or leaf.layout != torch.strided:
        return f"{leaf.dim()}{'nested' if leaf.is_nested else str(leaf.layout).removeprefix('torch.')}"
    return str(leaf.dim())


def is_plain(leaf):
    return (isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided and not leaf.is_nested
            and not leaf.is_quantized and type(leaf) is torch.Tensor)


def single(leaf, device, shape):
    """The first element in another shape; so that indices stay in range."""
    plain = leaf.detach().resolve_conj().resolve_neg().flatten()
    first = plain[:1].clone() if plain.numel() else torch.zeros(1, dtype=plain.dtype)
    return first.reshape(shape).to(device)


def changes_of(leaf):
    """(name, what makes the operand) of everything that is done to one."""
    for device in (DEVICE, HOST, *devices()[1:]):
        if device != DEVICE:
            yield str(device), lambda device=device: place(leaf, Placed(device))
        if is_plain(leaf) and leaf.dim() != 0:
            yield f"{device}()", lambda device=device: single(leaf, device, ())
        if is_plain(leaf) and leaf.shape != (1,) and device.index != 1:
            yield f"{device}(1)", lambda device=device: single(leaf, device, (1,))


# ---- the calls

def dtype_of(op):
    on_host, on_device = op.supported_dtypes("cpu"), op.supported_dtypes("cuda")
    return min(on_host & on_device or on_device or on_host,
               key=lambda dtype: (dtype != torch.float32, dtype != torch.float16, str(dtype)))


def samples_of(op, limit):
    """One sample for each way in which an operator's samples differ in their tensors, those with other operands before
    those with other shapes. Of empty tensors an operator asks little, so those without come first."""
    seed_all()
    chosen = {}
    for sample in op.sample_inputs(HOST.type, dtype_of(op), requires_grad=False):
        arguments = arguments_of(sample)
        is_empty = any(tensor.numel() == 0 for tensor in tensors_in(arguments.leaves))
        if arguments.form not in chosen or (chosen[arguments.form][0] and not is_empty):
            chosen[arguments.form] = is_empty, tuple(arguments.operands), sample
    first_with = {operands: form for form, (_, operands, _) in reversed(chosen.items())}
    forms = sorted(chosen, key=lambda form: (chosen[form][0], form != first_with[chosen[form][1]]))
    return [chosen[form][2] for form in forms[:limit or None]]


def arguments_of(sample, **more):
    return Arguments(sample.input, tuple(sample.args), {**sample.kwargs, **more})


def call(operator, arguments, moved=None, change=None):
    first, args, kwargs = arguments.placed(moved, change and change())
    return operator(first, *args, **kwargs)


def on_host(op, sample, **more):
    """The result on the CPU, or None where there is none."""
    first, args, kwargs = Placed(HOST).all((sample.input, tuple(sample.args), dict(sample.kwargs)))
    try:
        seed_all()
        return op(first, *args, **kwargs, **more)
    except Exception:  # the operator is none for the CPU, or takes no such argument
        return None


def outs_for(result):
    """Arguments `out` like a result; None where a result cannot be given one."""
    if not tensors_in(result) or not all(is_plain(tensor) for tensor in tensors_in(result)):
        return None
    return pytree.tree_map(lambda tensor: torch.full_like(tensor, 1, memory_format=torch.contiguous_format), result)


def takes_generator(op, sample):
    """Some of the list's functions take any keyword, and drop it."""
    return ("generator" not in sample.kwargs and tensors_in(on_host(op, sample, generator=torch.Generator()))
            and not tensors_in(on_host(op, sample, generator="no generator")))


def variants_of(op, sample):
    """(what is told for all operands on cuda:0, operator, arguments, {what is told: operand to move}) of every way to
    call it with this sample."""
    plain = arguments_of(sample)
    yield "all", op, plain, {name: name for name in plain.operands}
    if op.inplace_variant is not None and isinstance(sample.input, torch.Tensor) and not sample.broadcasts_input:
        yield "inplace all", op.inplace_variant, plain, {f"inplace {name}": name for name in plain.operands}
    outs = outs_for(on_host(op, sample)) if op.supports_out else None
    if outs is not None:
        with_out = arguments_of(sample, out=outs)
        yield "out", op, with_out, {name: name for name in with_out.operands if name.partition("[")[0] == "out"}
    if takes_generator(op, sample):
        yield "generator", op, arguments_of(sample, generator=torch.Generator()), {"generator": "generator"}


def cases_of(op, limit):
    """(the names of a case, the call) of one operator."""
    for sample in samples_of(op, limit):
        form = arguments_of(sample).form
        for together, operator, arguments, moved in variants_of(op, sample):
            def case(operand, change, *how):
                told = {"op": full_name(op), "sample": form, "operand": operand, "change": change}
                return told, lambda: call(operator, arguments, *how)

            yield case(together, str(DEVICE))
            for operand, name in moved.items():
                index = arguments.operands[name]
                for change, make in changes_of(arguments.leaves[index]):
                    yield case(operand, change, index, make)


# ---- what happened

def broken_context():
    """The error of a context in which an operator failed on the device; None while it works."""
    try:
        for device in devices():
            torch.cuda.synchronize(device)
    except Exception as error:
        return error
    return None


def message_of(error):
    """Without what differs from run to run, or from build to build of one release: addresses, folders and lines."""
    text = re.sub(r"0x[0-9a-fA-F]+", "0x…", first_line(error))
    text = re.sub(r'"/[^"]*/((?:aten|c10|torch)/[^"]+)":\d+', r'"\1"', text)
    text = "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in " ".join(text.split()))
    return f"{type(error).__name__}: {text}"[:LONGEST_MESSAGE]


def outcome(run):
    try:
        seed_all()
        result = run()
    except Exception as error:  # whatever it is, it is the answer
        return message_of(error)
    return "pass " + (" ".join(sorted({str(tensor.device) for tensor in tensors_in(result)})) or "-")


def run_case(told, run):
    answer = outcome(run)
    error = broken_context()
    if error is not None:
        say_result({**told, "outcome": f"device assert: {first_line(error)}"})
        os._exit(BROKEN)  # what runs at exit would use the device
    say_result({**told, "outcome": answer})


def run_operator(op, number, share, limit):
    name = full_name(op)
    try:
        for index, (told, run) in enumerate(cases_of(op, limit)):
            if index >= share.first_case(number):
                say_begin(f"{number}.{index + 1}", **told)
                run_case(told, run)
    except Exception as error:  # of a generator of samples: what it gave until then was called
        say_result({"op": name, "sample": "-", "operand": "all", "change": "-", "outcome": message_of(error)})
    say_result({"finished": name})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--describe", action="store_true", help="say what machine this is, and end")
    parser.add_argument("--ops", default="", help="only operators whose whole name this regular expression matches")
    parser.add_argument("--samples", type=int, default=0, help="at most so many samples of each operator")
    Share.add_options(parser)
    options = parser.parse_args()
    if options.describe:
        print(json.dumps(describe()))
        return 0
    share = Share(options)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    operators = sorted(op_samples.invocations.op_db, key=full_name)
    planned = [(number, op) for number, op in enumerate(operators) if re.fullmatch(options.ops or ".*", full_name(op))]
    say_result({"planned": [full_name(op) for _, op in planned]})
    for position, (number, op) in enumerate(planned):
        if share.holds(position):
            say_begin(position + 1, op=full_name(op), sample="-", operand="all", change="-")
            run_operator(op, position, share, options.samples)
    return 0


if __name__ == "__main__":
    sys.exit(main())
