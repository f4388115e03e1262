"""Makes, moves, changes and frees tensors at random, and keeps an exact account of where each value came from.

    hooks_fuzz_program.py SEED ROUNDS THREADS

Every action is a line of its own in a file that does not exist, compiled for it and freed after it. Now and then two
values of different devices meet, and the program writes down what their histories have to be. Prints that as JSON:
{"FILE:LINE": {operand: [[line, how], ...] or null where no history may be told}}.
"""

import concurrent.futures
import copy
import io
import json
import pickle
import random
import sys
import typing

import numpy
import torch

SIZE = 4
DEVICES = ("cpu", "cuda:0", "cuda:1")
DEEPEST = 24  # a history of more steps goes straight to its origin


class Step(typing.NamedTuple):
    """One step of a history: the exact model of what devsan keeps for each storage."""

    line: int
    how: str
    parent: "Step | None"
    depth: int

    @staticmethod
    def after(line, how, parent):
        if parent is not None and parent.depth >= DEEPEST:
            while parent.parent is not None:
                parent = parent.parent
        return Step(line, how, parent, parent.depth + 1 if parent is not None else 0)

    def told(self):
        """Newest first. One line may do several steps, of which the newest says how."""
        steps, step = [], self
        while step is not None:
            if not steps or steps[-1][0] != step.line:
                steps.append([step.line, step.how])
            step = step.parent
        return steps


class Value:
    """A tensor and the history of its storage; None where devsan cannot know of the storage."""

    def __init__(self, tensor, history):
        self.tensor = tensor
        self.history = history

    def device(self):
        return str(self.tensor.device)


# Source text of one line each. `a` and `b` are values of one device, `c` one of any, `d` a device.
FACTORIES = ("torch.zeros(4, device=d)", "torch.ones(4, device=d)", "torch.full((4,), 2.0, device=d)",
             "torch.rand(4, device=d)", "torch.arange(4.0, device=d)", "torch.empty(4, device=d).fill_(1)",
             "torch.empty_strided((4,), (1,), device=d).zero_()", "torch.empty_like(a, device=d).copy_(a)")
FROM_ONE = ("a * 2", "-a", "a.clone()", "a.relu()", "a.exp()", "a.cumsum(0)", "a.softmax(0)", "torch.zeros_like(a)",
            "a.new_ones(4)", "torch.cat([a, a])[:4]", "a.sort().values", "a.flip(0)", "copy.deepcopy(a)",
            "a.detach().requires_grad_().exp().detach()", "a.sort(descending=True)[0]",
            "torch.tensor([], device=a.device).set_(a.untyped_storage().clone(), 0, (4,), (1,))",
            "a.unbind(0)[0].expand(4).clone()", "torch.nn.functional.layer_norm(a, (4,))")
FROM_ONE_TWICE = ("a.double().float()", "torch.where(a > b, a, b)", "(a + b) * 2", "a.square().sqrt()")
FROM_TWO = ("a + b", "torch.maximum(a, b)", "torch.stack([a, b])[1]", "a.lerp(b, 0.5)", "torch.cat([a[:2], b[:2]])",
            "torch.addcmul(a, a, b)")
# The weight, `b`, tells more than the input.
FROM_WEIGHT = ("torch.nn.functional.linear(a, b.expand(4, 4))", "torch.nn.functional.layer_norm(a, (4,), b)",
               "torch.nn.functional.conv1d(a.view(1, 1, 4), b.view(1, 1, 4), padding='same').view(4)")
VIEWS = ("a.view(4)", "a[:]", "a.detach()", "a.t()", "a.to(a.device)", "a.contiguous()", "a.data", "a.split(4)[0]",
         "torch.atleast_1d(b, a)[1]", "torch.broadcast_tensors(b, a)[1]", "a.view(4, 1).squeeze(1)", "a.chunk(1)[0]",
         "torch.meshgrid(b, a, indexing='ij')[1][0]", "a.requires_grad_(False)", "a.expand_as(b)",
         "torch.tensor([], device=a.device).set_(a)", "torch.empty(4, device=a.device).set_(a.untyped_storage())[:4]")
IN_PLACE = ("a.add_(1)", "a.mul_(b)", "a.zero_()", "a.fill_(3)", "a[0] = 5", "torch.add(a, 1, out=a)", "a.clamp_(0, 9)",
            "a.copy_(c)", "a.data.sub_(1)", "torch._foreach_add_([a, b], 1)", "a.cpu().numpy().sum()")
RESIZES = ("a.resize_(64).resize_(4).fill_(1)", "a.untyped_storage().resize_(4096)")
SOURCES = ("torch.from_numpy(numpy.ones(4, dtype='float32'))", "torch.from_numpy(a.cpu().numpy())",
           "torch.frombuffer(bytearray(16), dtype=torch.float32)", "torch.as_tensor(numpy.ones(4, dtype='float32'))",
           "torch.from_dlpack(numpy.ones(4, dtype='float32'))", "torch.from_dlpack(torch.ones(4))",
           "pickle.loads(pickle.dumps(a.cpu()))", "torch.load(saved())")
UNKNOWN = ("torch.tensor([]).set_(torch.UntypedStorage(16), 0, (4,), (1,)).fill_(1)",)


class Fuzzer:
    """One thread's actions. Its values may come from other threads' actions, with their accounts."""

    def __init__(self, seed, name, exchange, traded):
        self.random = random.Random(seed)
        self.file = f"/fuzz-{name}.py"
        self.stem = name
        self.line = 0
        self.values = []
        self.exchange = exchange
        self.traded = traded
        self.expected = {}

    # ---- running one line

    def run(self, source, **names):
        """Runs a line as a module, in a function or inside a module of torch; all code of it is freed afterwards."""
        self.line += 1
        space = {"torch": torch, "numpy": numpy, "copy": copy, "pickle": pickle, "saved": saved, **names}
        assign = "" if " = " in source else "r = "
        way = self.random.randrange(3)
        if way == 0:
            text = "\n" * (self.line - 1) + assign + source
        elif assign and way == 1:
            text = "\n" * (self.line - 1) + f"r = (lambda {', '.join(names)}: {source})({', '.join(names)})"
        elif assign:
            text = "\n" * (self.line - 1) + f"r = Through(lambda: {source})()"
            space["Through"] = Through
        else:
            text = "\n" * (self.line - 1) + source
        exec(compile(text, self.file, "exec"), space)
        result = space.pop("r", None)
        space.clear()
        return result

    def pick(self, device=None):
        fitting = [value for value in self.values if device in (None, value.device())]
        return self.random.choice(fitting) if fitting else self.create(device)

    def keep(self, tensor, history):
        value = Value(tensor, history)
        self.values.append(value)
        while len(self.values) > 40:
            self.values.pop(self.random.randrange(len(self.values)))
        return value

    # ---- actions

    def create(self, device=None):
        device = device or self.random.choice(DEVICES)
        other = self.random.choice(self.values).tensor if self.values else torch.ones(SIZE)
        source = self.random.choice(FACTORIES)
        if "_like(a" in source and str(other.device) == device:
            source = FACTORIES[0]
        tensor = self.run(source, a=other, d=device)
        return self.keep(tensor, Step.after(self.line, "created", None))

    def derive(self):
        a = self.pick()
        self.keep(self.run(self.random.choice(FROM_ONE), a=a.tensor), Step.after(self.line, "derived", a.history))

    def derive_twice(self):
        """Two operators in one line."""
        a = self.pick()
        b = self.pick(a.device())
        tensor = self.run(self.random.choice(FROM_ONE_TWICE), a=a.tensor, b=b.tensor)
        between = Step.after(self.line, "derived", a.history)
        self.keep(tensor, Step.after(self.line, "derived", between))

    def combine(self):
        a = self.pick()
        b = self.pick(a.device())
        self.keep(self.run(self.random.choice(FROM_TWO), a=a.tensor, b=b.tensor),
                  Step.after(self.line, "derived", a.history))

    def apply_weight(self):
        a = self.pick()
        b = self.pick(a.device())
        self.keep(self.run(self.random.choice(FROM_WEIGHT), a=a.tensor, b=b.tensor),
                  Step.after(self.line, "derived", b.history))

    def move(self):
        a = self.pick()
        device = self.random.choice([one for one in DEVICES if one != a.device()])
        source = self.random.choice(("a.to(d)", "a.to(d, torch.float32)", "torch.Tensor.to(a, device=d)"))
        self.keep(self.run(source, a=a.tensor, d=device), Step.after(self.line, "moved", a.history))

    def see(self):
        a = self.pick()
        b = self.pick(a.device())
        self.keep(self.run(self.random.choice(VIEWS), a=a.tensor, b=b.tensor), a.history)

    def change(self):
        a = self.pick()
        b = self.pick(a.device())
        memory = a.tensor.untyped_storage()
        # NumPy's cannot be resized, and another thread must not meet a tensor while it has another size.
        own_memory = memory.resizable() and memory.data_ptr() not in self.traded
        self.run(self.random.choice(IN_PLACE + (RESIZES if own_memory else ())), a=a.tensor, b=b.tensor,
                 c=self.pick().tensor)

    def rebind(self):
        a = self.pick()
        b = self.pick(a.device())
        source = self.random.choice(("a.data = b", "a.set_(b)", "a.set_(b.untyped_storage(), b.storage_offset(), (4,),"
                                     " b.stride())"))
        tensor = a.tensor.view(SIZE)  # another tensor of the same storage
        self.run(source, a=tensor, b=b.tensor)
        self.keep(tensor, b.history)

    def import_memory(self):
        a = self.pick()
        tensor = self.run(self.random.choice(SOURCES), a=a.tensor)
        self.keep(tensor, Step.after(self.line, "created", None))

    def load_elsewhere(self):
        device = self.random.choice(("cuda:0", "cuda:1"))
        tensor = self.run("torch.load(saved(), map_location=d)", d=device)
        self.keep(tensor, Step.after(self.line, "moved", None))

    def take_unknown(self):
        self.keep(self.run(self.random.choice(UNKNOWN)), None)

    def backward(self):
        a = self.pick()
        leaf = a.tensor.detach().clone().requires_grad_()
        self.run("(a * 2).square().sum().backward()", a=leaf)
        assert leaf.grad is not None  # its history begins at autograd's own operators: not modelled

    def free(self):
        self.random.shuffle(self.values)
        del self.values[:self.random.randrange(1, 8)]

    def trade(self):
        """Gives a value to the other threads, and takes one of theirs."""
        given = self.pick()
        self.traded.add(given.tensor.untyped_storage().data_ptr())
        self.exchange.append(given)
        try:
            self.values.append(self.exchange.pop(self.random.randrange(3)))
        except IndexError:
            pass

    def meet(self):
        a = self.pick()
        b = self.pick(self.random.choice([one for one in DEVICES if one != a.device()]))
        try:
            self.run(self.random.choice(("a + b", "torch.mul(a, b)", "a - b")), a=a.tensor, b=b.tensor)
        except RuntimeError as error:
            assert "on the same device" in str(error), error
            self.expected[f"{self.file}:{self.line}"] = {
                name: value.history.told() if value.history is not None else None
                for name, value in (("self", a), ("other", b))}

    ACTIONS = {create: 6, derive: 8, derive_twice: 3, combine: 8, apply_weight: 4, move: 6, see: 8, change: 6,
               rebind: 4, import_memory: 5, load_elsewhere: 1, take_unknown: 2, backward: 1, free: 5, trade: 2, meet: 8}

    def play(self, rounds):
        for action in self.random.choices(list(self.ACTIONS), self.ACTIONS.values(), k=rounds):
            action(self)


class Through(torch.nn.Module):
    """Puts frames of torch between the line and its caller."""

    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self):
        return self.body()


def saved():
    buffer = io.BytesIO(SAVED)
    buffer.seek(0)
    return buffer


SAVED = io.BytesIO()
torch.save(torch.ones(SIZE), SAVED)
SAVED = SAVED.getvalue()


def main(seed, rounds, threads):
    exchange, traded = [], set()
    fuzzers = [Fuzzer(seed * 1000 + k, f"{seed}-{k}", exchange, traded) for k in range(threads)]
    fuzzers[0].play(rounds)
    with concurrent.futures.ThreadPoolExecutor(threads - 1) as pool:
        for played in [pool.submit(fuzzer.play, rounds) for fuzzer in fuzzers[1:]]:
            played.result()
    fuzzers[0].play(rounds // 4)
    json.dump({place: chain for fuzzer in fuzzers for place, chain in fuzzer.expected.items()}, sys.stdout)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(*map(int, sys.argv[1:]))
