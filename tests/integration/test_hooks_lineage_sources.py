"""Histories of what modules compute, and of storages that no operator makes."""

import subprocess

from hooks_programs import found_at, line_of, steps_of


# Two blocks of a model on two devices: what went wrong is where the second one was moved, not where its input was.
WEIGHTS = """\
import torch


class Block(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        weight = next(self.inner.parameters())
        return self.inner(x.to(weight.device))


def attempt(body):
    try:
        body()
    except RuntimeError:
        return
    raise AssertionError("nothing was raised")


torch.manual_seed(0)
base = torch.ones(2, 4, 6, device="cuda:0")
linear = Block(torch.nn.Linear(6, 6))
conv = Block(torch.nn.Conv1d(4, 4, 3, padding=1))
norm = Block(torch.nn.LayerNorm(6))
lstm = Block(torch.nn.LSTM(6, 6, batch_first=True))
linear.to("cuda:1")  # @linear_moved
conv.to("cuda:1")  # @conv_moved
norm.to("cuda:1")  # @norm_moved
lstm.to("cuda:1").to("cpu")  # @lstm_moved
attempt(lambda: base + linear(base))  # @linear
attempt(lambda: base + conv(base))  # @conv
attempt(lambda: base + norm(base))  # @norm
attempt(lambda: base + lstm(base)[0])  # @lstm
target = torch.tensor([0, 1], device="cuda:1")
classes = torch.ones(6, device="cuda:1")  # @classes_made
scores = torch.ones(2, 6, device="cuda:1")  # @scores_made
attempt(lambda: base + torch.nn.functional.cross_entropy(scores, target, classes, reduction="none").view(2, 1, 1))  # @loss
"""


def test_the_history_of_what_a_module_computed_leads_to_the_line_that_moved_the_module(run_python):
    result = run_python(WEIGHTS, sim=2)
    assert result.status == 0, result.stderr
    for name in ("linear", "conv", "norm", "lstm"):
        finding = found_at(result, WEIGHTS, name)
        [operand] = [one for one in finding["operands"] if one["arg"] == "other"]
        assert (line_of(WEIGHTS, f"{name}_moved"), "moved") in steps_of(operand), (name, operand["lineage"])
    # The weights of a loss's classes are no module's: what the loss is about is the scores.
    [operand] = [one for one in found_at(result, WEIGHTS, "loss")["operands"] if one["arg"] == "other"]
    assert steps_of(operand)[-1] == (line_of(WEIGHTS, "scores_made"), "created")


# Storages that no operator makes, in all the ways that programs come by one.
SOURCES = """\
import array
import copy
import io
import pickle
import sys
import tempfile

import torch

GPU = torch.ones(3, device="cuda")
CPU = torch.ones(3)


def attempt(body):
    try:
        body()
    except RuntimeError:
        return
    raise AssertionError("nothing was raised")


def saved(*values):
    buffer = io.BytesIO()
    torch.save(list(values), buffer)
    buffer.seek(0)
    return buffer


if __name__ == "__main__":
    frombuffer = torch.frombuffer(array.array("f", [1, 2, 3]), dtype=torch.float32)  # @frombuffer_made
    attempt(lambda: frombuffer + GPU)  # @frombuffer
    exchanged = torch.from_dlpack(torch.ones(3))  # @dlpack_made
    attempt(lambda: exchanged + GPU)  # @dlpack
    attempt(lambda: exchanged.view(3, 1).t()[0] + GPU)  # @dlpack_view
    [loaded] = torch.load(saved(torch.ones(3)))  # @load_made
    attempt(lambda: loaded + GPU)  # @load
    [on_gpu] = torch.load(saved(torch.ones(3)), map_location="cuda")  # @map_location_made
    attempt(lambda: on_gpu + CPU)  # @map_location
    unpickled = pickle.loads(pickle.dumps(torch.ones(3)))  # @pickle_made
    attempt(lambda: unpickled + GPU)  # @pickle
    original = torch.ones(3)  # @original_made
    copied = copy.deepcopy(original)  # @deepcopy_made
    attempt(lambda: copied + GPU)  # @deepcopy
    shared = torch.ones(3).share_memory_()  # @shared_made
    attempt(lambda: shared + GPU)  # @shared
    read = torch.asarray(torch.UntypedStorage(12), dtype=torch.uint8).view(torch.float32)  # @read_made
    attempt(lambda: read + GPU)  # @read
    own = torch.empty(0).set_(torch.UntypedStorage(12), 0, (3,), (1,))
    attempt(lambda: own + GPU)  # @own
    given = torch.empty(3)  # @given_made
    others = torch.empty(3)  # @gathered_made
    with tempfile.TemporaryDirectory() as folder:
        torch.distributed.init_process_group("gloo", f"file://{folder}/store", rank=0, world_size=1)
        torch.distributed.all_reduce(given)
        torch.distributed.all_gather([others], given)
        torch.distributed.destroy_process_group()
    attempt(lambda: given + GPU)  # @given
    attempt(lambda: others + GPU)  # @gathered
    if "numpy" in sys.argv:
        import numpy

        from_numpy = torch.from_numpy(numpy.ones(3, dtype="float32"))  # @numpy_made
        attempt(lambda: from_numpy + GPU)  # @numpy
        round_trip = torch.from_numpy(GPU.cpu().numpy() * 2)  # @round_trip_made
        attempt(lambda: round_trip + GPU)  # @round_trip
"""


def test_storages_that_no_operator_made_have_the_line_that_they_came_from(run_python, python):
    has_numpy = subprocess.run([python, "-c", "import numpy"], capture_output=True).returncode == 0
    result = run_python(SOURCES, *(["numpy"] if has_numpy else []), sim=1)
    assert result.status == 0, result.stderr
    names = ["frombuffer", "dlpack", "load", "read", "pickle", "shared", "given", "gathered"]
    for name in names + (["numpy", "round_trip"] if has_numpy else []):
        [operand] = [one for one in found_at(result, SOURCES, name)["operands"] if one["arg"] == "self"]
        assert steps_of(operand) == [(line_of(SOURCES, f"{name}_made"), "created")], name

    def steps(mark):
        [operand] = [one for one in found_at(result, SOURCES, mark)["operands"] if one["arg"] == "self"]
        return steps_of(operand)

    assert steps("dlpack_view") == steps("dlpack")
    assert steps("map_location") == [(line_of(SOURCES, "map_location_made"), "moved")]
    assert steps("deepcopy") == [(line_of(SOURCES, "deepcopy_made"), "derived"),
                                 (line_of(SOURCES, "original_made"), "created")]
    assert steps("own") == []  # nobody saw where the program had it from


# Values that come from a worker's process are rebuilt by `multiprocessing`, called by torch, called by the program.
WORKER = """\
import colorsys
import contextlib

import torch


def attempt(body):
    try:
        body()
    except RuntimeError:
        return
    raise AssertionError("nothing was raised")


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.full((3,), float(index))


@contextlib.contextmanager
def joined(a, b):
    yield a + b  # @inside


def through_contextlib():
    with joined(torch.ones(3), GPU):
        pass


def through_colorsys():
    colorsys.rgb_to_yiq(torch.ones(3), GPU, 0.0)  # @mean


GPU = torch.ones(3, device="cuda")
if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Numbers(), batch_size=2, num_workers=1)
    for batch in loader:  # @taken
        attempt(lambda: batch + GPU)  # @used
        break
    attempt(through_contextlib)
    attempt(through_colorsys)
"""


def test_what_the_standard_library_does_for_the_program_has_the_line_that_called_it(run_python):
    result = run_python(WORKER, sim=1)
    assert result.status == 0, result.stderr
    [operand] = [one for one in found_at(result, WORKER, "used")["operands"] if one["odd"]]
    assert steps_of(operand) == [(line_of(WORKER, "taken"), "created")]
    assert found_at(result, WORKER, "inside")["where"]["function"] == "joined"
    assert found_at(result, WORKER, "mean")["where"]["function"] == "through_colorsys"
