"""Where a value came to its device, and that no origin outlives its storage."""

import subprocess

from hooks_programs import found_at, line_of, odd_operand, steps_of

CHAINS = """\
import torch


def attempt(body):
    try:
        body()
    except RuntimeError:
        pass


def gpu(*sizes):
    return torch.ones(sizes or (3,), device="cuda")


created = torch.ones(3)  # @created_made
attempt(lambda: gpu() + created)  # @created
first = gpu()
moved = first.cpu()  # @moved_here
attempt(lambda: gpu() + moved)  # @moved
derived = moved * 2  # @derived_here
attempt(lambda: gpu() + derived)  # @derived
view = derived.view(3, 1)[1:].t()
attempt(lambda: gpu(1, 2) + view)  # @view
in_place = torch.zeros(3)  # @in_place_made
in_place.add_(5).mul_(2)
in_place.copy_(gpu())
attempt(lambda: gpu() + in_place)  # @in_place
data = torch.empty(3)
other = torch.full((3,), 2.0)  # @data_made
data.data = other
attempt(lambda: gpu() + data)  # @data
target = torch.empty(0)
source = torch.full((3,), 3.0)  # @set_made
target.set_(source)
attempt(lambda: gpu() + target)  # @set
resized = torch.empty(1)  # @resize_made
resized.resize_(3)
attempt(lambda: gpu() + resized)  # @resize
out = torch.empty(3)  # @out_made
torch.add(torch.ones(3), 1, out=out)
attempt(lambda: gpu() + out)  # @out
model = torch.nn.Linear(3, 3)  # @model_made
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    model(torch.ones(3)).sum().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
attempt(lambda: gpu(1, 3) @ model.weight)  # @stepped
halves = torch.ones(4).chunk(2)  # @chunk_made
attempt(lambda: gpu(2) + halves[1])  # @chunk
loop = torch.zeros(3)
for k in range(200):
    loop = loop + 1
attempt(lambda: gpu() + loop)  # @long
"""


def test_lineage_ends_where_the_value_came_to_its_device(run_python):
    result = run_python(CHAINS, sim=1)
    assert result.status == 0, result.stderr
    line = {name: line_of(CHAINS, name) for name in (
        "created_made", "moved_here", "derived_here", "in_place_made", "data_made", "set_made", "resize_made",
        "out_made", "model_made", "chunk_made")}
    steps = {mark: steps_of(odd_operand(found_at(result, CHAINS, mark))) for mark in (
        "created", "moved", "derived", "view", "in_place", "data", "set", "resize", "out", "stepped", "chunk", "long")}
    assert steps["created"] == [(line["created_made"], "created")]
    assert steps["moved"][0] == (line["moved_here"], "moved")
    assert steps["derived"][:2] == [(line["derived_here"], "derived"), (line["moved_here"], "moved")]
    assert steps["view"] == steps["derived"]
    assert steps["in_place"] == [(line["in_place_made"], "created")]
    assert steps["data"] == [(line["data_made"], "created")]
    assert steps["set"] == [(line["set_made"], "created")]
    assert steps["resize"] == [(line["resize_made"], "created")]
    assert steps["out"] == [(line["out_made"], "created")]
    assert steps["stepped"] == [(line["model_made"], "created")]
    assert steps["chunk"] == [(line["chunk_made"], "created")]
    assert len(steps["long"]) <= 26 and steps["long"][-1] == (line_of(CHAINS, "long") - 3, "created")


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


def attempt(left, right):
    try:
        left + right
    except RuntimeError:
        pass


torch.manual_seed(0)
base = torch.ones(2, 4, 6, device="cuda:0")
linear = Block(torch.nn.Linear(6, 6))
conv = Block(torch.nn.Conv1d(4, 4, 3, padding=1))
norm = Block(torch.nn.LayerNorm(6))
lstm = Block(torch.nn.LSTM(6, 6, batch_first=True))
linear.to("cuda:1")  # @linear_moved
conv.to("cuda:1")  # @conv_moved
norm.to("cuda:1")  # @norm_moved
lstm.to("cuda:1")  # @lstm_moved
attempt(base, linear(base))  # @linear
attempt(base, conv(base))  # @conv
attempt(base, norm(base))  # @norm
attempt(base, lstm(base)[0])  # @lstm
target = torch.tensor([0, 1], device="cuda:1")
classes = torch.ones(6, device="cuda:1")  # @classes_made
scores = torch.ones(2, 6, device="cuda:1")  # @scores_made
attempt(base, torch.nn.functional.cross_entropy(scores, target, classes, reduction="none").view(2, 1, 1))  # @loss
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


def attempt(operand):
    try:
        operand + (GPU if operand.device.type == "cpu" else torch.ones(3))
    except RuntimeError:
        pass


def saved(*values):
    buffer = io.BytesIO()
    torch.save(list(values), buffer)
    buffer.seek(0)
    return buffer


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, k):
        return torch.full((3,), float(k))


if __name__ == "__main__":
    frombuffer = torch.frombuffer(array.array("f", [1, 2, 3]), dtype=torch.float32)  # @frombuffer_made
    attempt(frombuffer)  # @frombuffer
    exchanged = torch.from_dlpack(torch.ones(3))  # @dlpack_made
    attempt(exchanged)  # @dlpack
    attempt(exchanged.view(3, 1).t()[0])  # @dlpack_view
    [loaded] = torch.load(saved(torch.ones(3)))  # @load_made
    attempt(loaded)  # @load
    [on_gpu] = torch.load(saved(torch.ones(3)), map_location="cuda")  # @map_location_made
    attempt(on_gpu)  # @map_location
    unpickled = pickle.loads(pickle.dumps(torch.ones(3)))  # @pickle_made
    attempt(unpickled)  # @pickle
    original = torch.ones(3)  # @original_made
    copied = copy.deepcopy(original)  # @deepcopy_made
    attempt(copied)  # @deepcopy
    shared = torch.ones(3).share_memory_()  # @shared_made
    attempt(shared)  # @shared
    for batch in torch.utils.data.DataLoader(Data(), batch_size=None, num_workers=1):  # @loader_made
        attempt(batch)  # @loader
    own = torch.empty(0).set_(torch.UntypedStorage(12), 0, (3,), (1,))
    attempt(own)  # @own
    given = torch.empty(3)  # @given_made
    others = torch.empty(3)  # @gathered_made
    with tempfile.NamedTemporaryFile() as file:
        torch.distributed.init_process_group("gloo", f"file://{file.name}", rank=0, world_size=1)
        torch.distributed.all_reduce(given)
        torch.distributed.all_gather([others], given)
        torch.distributed.destroy_process_group()
    attempt(given)  # @given
    attempt(others)  # @gathered
    if "numpy" in sys.argv:
        import numpy

        from_numpy = torch.from_numpy(numpy.ones(3, dtype="float32"))  # @numpy_made
        attempt(from_numpy)  # @numpy
        round_trip = torch.from_numpy(GPU.cpu().numpy() * 2)  # @round_trip_made
        attempt(round_trip)  # @round_trip
"""


def test_storages_that_no_operator_made_have_the_line_that_they_came_from(run_python, python):
    has_numpy = subprocess.run([python, "-c", "import numpy"], capture_output=True).returncode == 0
    result = run_python(SOURCES, *(["numpy"] if has_numpy else []), sim=1)
    assert result.status == 0, result.stderr
    names = ["frombuffer", "dlpack", "load", "pickle", "shared", "given", "gathered"]
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
    assert steps("loader") == [(line_of(SOURCES, "loader_made"), "created")]
    assert steps("own") == []  # nobody saw where the program had it from


# Storages that no operator made. Each is preceded by tensors that are made and freed, so that storages are put where
# tagged ones were.
UNTAGGED = """\
import io
import torch

numpy = __import__("importlib").util.find_spec("numpy") and __import__("numpy")


def tagged():
    return torch.zeros(3)  # @freed


buffer = io.BytesIO()
torch.save(torch.ones(3), buffer)
holder = bytearray(12)
keep = torch.ones(3)


def make(k):
    if k % 4 == 0:
        return torch.frombuffer(holder, dtype=torch.float32)
    if k % 4 == 1 and numpy:
        return torch.from_numpy(numpy.ones(3, dtype="float32"))
    if k % 4 == 2:
        return torch.from_dlpack(keep.numpy() if numpy else keep)
    buffer.seek(0)
    return torch.load(buffer)


left = torch.ones(3, device="cuda")
for k in range(1000):
    for _ in range(8):
        tagged()
    operand = make(k)
    try:
        eval(compile("\\n" * (1000 + k) + "left + operand", "/generated.py", "eval"))
    except RuntimeError:
        pass
    del operand
"""


def test_storages_that_no_operator_made_never_show_the_origin_of_a_freed_one(run_python):
    result = run_python(UNTAGGED, sim=1)
    assert result.status == 0, result.stderr
    found = [f for f in result.raised() if f["where"]["file"] == "/generated.py"]
    assert sorted(f["where"]["line"] for f in found) == list(range(1001, 2001))
    freed = line_of(UNTAGGED, "freed")
    for finding in found:
        [operand] = [one for one in finding["operands"] if one["device"] == "cpu"]
        assert freed not in [line for line, _ in steps_of(operand)], finding


# Code objects that are freed while others come to lie where they were.
GENERATED = """\
import random
import torch

random.seed(5)
left = torch.ones(3, device="meta")
SOURCE = '''
def function(left, right):
    for _ in range(1):
        {padding}left + right
'''
for k in range(ROUNDS):
    lines = random.randrange(1, 50)
    file = f"/generated{k % 7}.py"
    space = {}
    exec(compile("\\n" * (lines * 10) + SOURCE.format(padding="0; " * (k % 3)), file, "exec"), space)
    right = torch.ones(3)
    space["function"](right, right)
    if k % EVERY == 0:
        try:
            space["function"](left, right)
        except RuntimeError as error:
            frame = error.__traceback__.tb_next
            print(f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}")
            del frame, error
    del space
"""


def test_code_that_is_freed_never_lends_its_file_or_line_to_other_code(run_python):
    result = run_python(GENERATED.replace("ROUNDS", "3000").replace("EVERY", "10"))
    assert result.status == 0, result.stderr
    truth = {}
    for place in result.stdout.split():
        truth[place] = truth.get(place, 0) + 1
    found = {}
    for finding in result.raised():
        if not finding["where"]["file"].startswith("/generated"):
            continue
        place = f"{finding['where']['file']}:{finding['where']['line']}"
        found[place] = found.get(place, 0) + finding["count"]
    assert found == truth


def test_a_mismatch_is_found_after_more_places_than_the_trace_has_room_for(run_python):
    result = run_python(GENERATED.replace("ROUNDS", "80000").replace("EVERY", "79999"), timeout=400)
    assert result.status == 0, result.stderr
    places = [f"{f['where']['file']}:{f['where']['line']}" for f in result.raised() if f["where"]]
    assert places == result.stdout.split()
