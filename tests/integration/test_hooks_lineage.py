"""Where a value came to its device, and that no origin outlives its storage."""

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


# Without simulated devices, for every torch that has hooks: one operand has data and the other has none.
WITHOUT_DATA = """\
import torch

made = torch.ones(3)  # @made
moved = made.to("meta")  # @moved
kept = torch.from_numpy(made.numpy())  # @kept
kept + moved  # @refused
"""


def test_lineage_is_known_where_devices_cannot_be_simulated(run_python):
    result = run_python(WITHOUT_DATA)
    assert result.status == 1
    first, second = found_at(result, WITHOUT_DATA, "refused")["operands"]
    assert (first["name"], steps_of(first)) == ("kept", [(line_of(WITHOUT_DATA, "kept"), "created")])
    assert (second["name"], steps_of(second)) == (
        "moved", [(line_of(WITHOUT_DATA, "moved"), "moved"), (line_of(WITHOUT_DATA, "made"), "created")])


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
