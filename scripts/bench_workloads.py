"""What is measured: single operators, and training steps made of them."""

import contextlib
import ctypes
import gc
import itertools
from typing import Callable, Iterator, NamedTuple


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


def tiny_step(device: str) -> Callable[[], None]:
    """The worst case: some 1,950 operators on tensors so small that each does next to nothing."""
    import torch

    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(20)]).to(device)
    return training_step(model, torch.randn(4, 8, device=device))


def transformer_step(device: str) -> Callable[[], None]:
    import torch

    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).to(device)
    return training_step(model, torch.randn(8, 64, 128, device=device))


def training_step(model, inputs) -> Callable[[], None]:
    import torch

    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)

    def step() -> None:
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
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
