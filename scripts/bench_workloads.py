"""What is measured: single operators, and training steps made of them."""

import contextlib
import ctypes
import gc
import itertools
import sys
import time
from typing import Callable, Iterator, NamedTuple

from bench_statistics import Aim


class Op(NamedTuple):
    """One operator, `batch(n)` calls it n times. The batch calls operators 32 a turn: Python's loop counts little."""

    name: str
    operands: int
    batch: Callable[[int], None]


UNROLLED = 32


def batch_of(call: str, names: dict) -> Callable[[int], None]:
    body = "\n".join([f"        {call}"] * UNROLLED)
    source = f"def batch(n):\n    for _ in range(n // {UNROLLED}):\n{body}\n"
    space = dict(names)
    exec(compile(source, f"<{call}>", "exec"), space)
    return space["batch"]


def operators(device: str) -> list[Op]:
    """Cheap operators. All but the last write to memory that is there, so that allocation does not hide the cost."""
    import torch

    a, b, c, d = (torch.ones(4, device=device) for _ in range(4))
    names = {"torch": torch, "a": a, "b": b, "c": c, "d": d,
             "o": torch.empty(4, device=device), "o4": torch.empty(16, device=device), "abcd": (a, b, c, d)}
    calls = [("a.neg_()", 1), ("a.copy_(b)", 2), ("torch.add(a, b, out=o)", 3),
             ("torch.cat(abcd, out=o4)", 5), ("a + b", 2)]
    return [Op(call, operands, batch_of(call, names)) for call, operands in calls]


LARGEST_BATCH = 64  # of the GPU-bound step, in sequences
Step = Callable[[], None]


class Workload(NamedTuple):
    """A step of a training: `make(device)` gives what runs once."""

    make: Callable[[str], Step]
    aim: Aim


def tiny_step(device: str) -> Step:
    """The worst case: some 1,950 operators on tensors so small that each does next to nothing."""
    import torch

    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(20)]).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    return training_step(model, optimizer, torch.randn(4, 8, device=device))


def transformer_step(device: str) -> Step:
    import torch

    model = transformer(2, 128, 4, device)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    return training_step(model, optimizer, torch.randn(8, 64, 128, device=device))


def host_bound_step(device: str) -> Step:
    """A small batch: the GPU waits for the host."""
    import torch

    layers, width = (1, 16) if is_rehearsal() else (6, 256)
    model = transformer(layers, width, 4, device)
    optimizer = torch.optim.AdamW(model.parameters())
    return training_step(model, optimizer, torch.randn(2, 64, width, device=device))


def gpu_bound_step(device: str) -> Step:
    """As large as the smallest GPT-2, in bfloat16, with a batch for which the host is far ahead of the GPU."""
    import torch

    layers, width, batch, length = (1, 24, 2, 16) if is_rehearsal() else (12, 768, 8, 512)
    model = transformer(layers, width, 12, device)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    forward = torch.autocast("cuda", torch.bfloat16)(model.forward)
    while True:
        step = training_step(forward, optimizer, torch.randn(batch, length, width, device=device))
        # The eight sequences that kept an H100 busy are not enough for an H200, which waited for the host.
        if is_rehearsal() or batch >= LARGEST_BATCH or waits_for_gpu(step):
            return step
        batch *= 2


def waits_for_gpu(step: Step) -> bool:
    """Whether the GPU takes twice the time that the host needs to queue a step."""
    import torch

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    began = time.perf_counter()
    step()
    queued = time.perf_counter()
    torch.cuda.synchronize()
    return time.perf_counter() - began >= 2 * (queued - began)


def graph_replay(device: str) -> Step:
    """A whole step, captured once while the process is as it started: under devsan with its hooks on."""
    import torch

    torch.manual_seed(0)
    count = 2 if is_rehearsal() else 12
    layers = [layer for _ in range(count) for layer in (torch.nn.Linear(256, 256), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers).to(device)
    optimizer = torch.optim.Adam(model.parameters(), capturable=True)
    step = training_step(model, optimizer, torch.randn(64, 256, device=device))
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()

    def replay(_: Step = step) -> None:  # holds on to the memory that the graph works on
        graph.replay()

    return replay


# DESIGN's budgets. Nothing is added when the interval holds 1 and reaches at most half a percent either way.
STEPS = {
    "cpu": {"tiny": Workload(tiny_step, Aim(1.05, 0.004)), "transformer": Workload(transformer_step, Aim(1.01, 0.003))},
    "cuda": {"host-bound": Workload(host_bound_step, Aim(1.02, 0.004)),
             "GPU-bound": Workload(gpu_bound_step, Aim(1.002, 0.0008)),
             "graph replay": Workload(graph_replay, Aim(1.0, 0.002, trusted=0.005))},
}


def is_rehearsal() -> bool:
    """Simulated devices show that everything runs; models of real size would take them minutes."""
    return "devsan_simulation" in sys.modules


def transformer(layers: int, width: int, heads: int, device: str):
    import torch

    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True)
    return torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).to(device)


def training_step(forward, optimizer, inputs) -> Step:
    def step() -> None:
        optimizer.zero_grad()
        forward(inputs).square().mean().backward()
        optimizer.step()

    return step


def switch() -> Callable[[int], None]:
    """Switches devsan's hooks on (1) and off (0) in this process, which has imported torch."""
    with open("/proc/self/maps") as maps:
        if "libdevsan_torch.so" not in maps.read():
            raise SystemExit("devsan's hooks are not in this process")
    set_enabled = ctypes.CDLL(None).devsan_set_enabled
    set_enabled.argtypes, set_enabled.restype = [ctypes.c_int], None
    return set_enabled


def in_turn(count: int) -> Iterator[tuple[int, int]]:
    """The order of each pair: what runs second finds warmer caches, so it is each one's turn."""
    return itertools.islice(itertools.cycle([(0, 1), (1, 0)]), count)


@contextlib.contextmanager
def no_garbage_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
