"""Ways through helpers, caches and functions that an odd operand took, or should have: the branch that a helper lacks, the
key of a cache, a tensor that is alone on its device, a part that was put into a model."""

from evidence_programs import PROLOGUE, Evidence
from hooks_programs import found_at

MOVERS = PROLOGUE + """
import collections.abc

SEVERAL = (list, tuple)


def recursive(data, device=None):
    if device is None:
        return data
    if torch.is_tensor(data):
        return data.to(device)
    if isinstance(data, dict):
        return {name: recursive(part, device) for name, part in data.items()}
    return data  # @end of recursive


def of_one_entry(data):
    if isinstance(data, torch.Tensor):
        return data.cuda()
    elif type(data) in (list, set):
        return [part.cuda() for part in data]
    else:
        return data  # @end of entry


def mapped(function, data):
    if isinstance(data, torch.Tensor):
        return function(data)
    return [mapped(function, part) for part in data] if isinstance(data, list) else data  # @end of mapped


def of_several(data, device):
    if torch.is_tensor(data):
        return data.to(device)
    if isinstance(data, SEVERAL):
        return type(data)(of_several(part, device) for part in data)
    return data


def abstract(data, device):
    if torch.is_tensor(data):
        return data.to(device)
    if isinstance(data, collections.abc.Mapping):
        return {name: part if name == "kept" else abstract(part, device) for name, part in data.items()}
    if isinstance(data, collections.abc.Sequence):
        return [abstract(part, device) for part in data]
    return data


def flat(data, device):
    if isinstance(data, dict):
        return {name: part.to(device) if torch.is_tensor(part) else part for name, part in data.items()}
    return data


def stored(data, device):
    if isinstance(data, dict):
        for name, part in data.items():
            data[name] = part.to(device) if torch.is_tensor(part) else part
        data = dict(data)
    return data


def two_ends(data, device):
    if torch.is_tensor(data):
        return data.to(device)
    if isinstance(data, dict):
        return {name: two_ends(part, device) for name, part in data.items()}
    if isinstance(data, str):
        return data
    return data


def pair():
    return {"x": torch.ones(3), "pair": (torch.ones(3), 1)}


def by_recursion():
    batch = recursive(pair(), "cuda")
    batch["x"] + batch["pair"][0]  # @recursive


def by_entries():
    batch = {name: of_one_entry(part) for name, part in pair().items()}
    batch["x"] + batch["pair"][0]  # @entry


def by_nested_entries():
    batch = recursive({"all": {"x": torch.ones(3)}, "pair": (torch.ones(3), 1)}, "cuda")
    batch["all"]["x"] + batch["pair"][0]  # @nested


def by_mapping():
    batch = mapped(lambda part: part.cuda(), [torch.ones(3), {"inner": torch.ones(3)}])
    batch[0] + batch[1]["inner"]  # @mapped


def by_constant():
    batch = of_several([torch.ones(3), {"inner": torch.ones(3)}], "cuda")
    batch[0] + batch[1]["inner"]  # @constant


def by_abstract():
    batch = abstract({"x": torch.ones(3), "kept": (torch.ones(3), 1)}, "cuda")
    batch["x"] + batch["kept"][0]  # @abstract


def by_flat():
    batch = flat(pair(), "cuda")
    batch["x"] + batch["pair"][0]  # @flat


def by_store():
    batch = stored(pair(), "cuda")
    batch["x"] + batch["pair"][0]  # @stored


def by_two_ends():
    batch = two_ends(pair(), "cuda")
    batch["x"] + batch["pair"][0]  # @two ends


for body in (by_recursion, by_nested_entries, by_entries, by_mapping, by_constant, by_abstract, by_flat, by_store, by_two_ends):
    attempt(body)
"""


def test_the_line_that_hands_back_what_a_helper_has_no_branch_for_is_told_and_no_helper_that_may_know_it(run_python):
    evidence = Evidence(run_python(MOVERS, sim=1), MOVERS)
    for mark, end, told in (
        ("recursive", "end of recursive", "tuple"),
        ("nested", "end of recursive", "tuple"),
        ("entry", "end of entry", "tuple"),
        ("mapped", "end of mapped", "dict"),
    ):
        assert evidence.of(mark, "passed-over-at") == [(end, told)], mark
    for mark in ("constant", "abstract", "flat", "stored", "two ends"):
        assert len(evidence.of(mark, "sibling-moved")) == 1, mark
        assert evidence.of(mark, "passed-over-at") == [], mark


CACHES = PROLOGUE + """
tables, alone = {}, {}
CPU = torch.device("cpu")


def by_variable(size, device):
    key = (size, "table")  # @key by variable
    if key not in tables:
        rows = torch.arange(size, device=device)
        tables[key] = rows
    return tables[key]


def made(size, device):
    return torch.arange(size, device=device)


def by_helper(size, device):
    if size not in alone:
        alone[size] = made(size, device)  # @key by helper
    return alone[size]


def among_others(size, device):
    if size not in tables:
        tables[size] = made(size, device)  # @key among others
    return tables[size]


def by_device(size, device):
    key = (size, str(device))
    if key not in tables:
        tables[key] = torch.arange(size, device=device)
    return tables[key]


def by_argument(size, place):
    key = (size, 0, place)
    if key not in tables:
        tables[key] = torch.arange(size, device=place)
    return tables[key]


def never_looked_for(size, device):
    tables["last"] = torch.arange(size, device=device)
    return tables["last"]


def variable():
    gpu() + by_variable(3, CPU) * 2  # @variable


def helper():
    gpu() + by_helper(3, CPU)  # @helper


def others():
    gpu() + among_others(3, CPU)  # @others


def device():
    gpu() + by_device(3, CPU)  # @device


def argument():
    gpu() + by_argument(3, CPU)  # @argument


def stored():
    gpu() + never_looked_for(3, CPU)  # @stored


for body in (variable, helper, others, device, argument, stored):
    attempt(body)
"""


def test_the_line_that_makes_the_key_of_a_cache_is_told_where_that_leaves_the_device_out(run_python):
    evidence = Evidence(run_python(CACHES, sim=1), CACHES)
    assert evidence.of("variable", "cache-key-at") == [("key by variable", "tables")]
    assert evidence.of("helper", "cache-key-at") == [("key by helper", "alone")]
    # Other lines fill that dictionary, too; the calls that led to the value tell which one it was.
    assert evidence.of("others", "cache-key-at") == [("key among others", "tables")]
    for mark in ("device", "argument", "stored"):
        assert evidence.of(mark, "cache-key-at") == [], mark


ALONE = PROLOGUE + """
def alone(a, b, c):
    several = [a + b]
    counts = torch.zeros(3).cuda()
    counts.add_(c)  # @alone


def one_of_two(a, b, c):
    several = [a + b, b.cuda()]
    counts = torch.zeros(3).cuda()
    counts.add_(c)  # @two


def few(a, b):
    counts = torch.zeros(3).cuda()
    counts.add_(a)  # @few


def model(a, b, c):
    several = [a + b]
    net = torch.nn.Linear(3, 3).cuda()
    counts = torch.zeros(3).cuda()
    counts.add_(c)  # @model


ones = [torch.ones(3) for _ in range(3)]
attempt(alone, *ones)
attempt(one_of_two, *ones)
attempt(few, *ones[:2])
attempt(model, *ones)
"""


def test_a_tensor_that_is_alone_on_its_device_in_a_function_is_told(run_python):
    result = run_python(ALONE, sim=1)

    def spread(mark):
        finding = found_at(result, ALONE, mark)
        return [e["text"] for o in finding["operands"] if not o["odd"] for e in o.get("evidence", []) if e["kind"] == "locals-elsewhere"]

    assert spread("alone") == ["cpu 4 of 5"]
    for mark in ("two", "few", "model"):
        assert spread(mark) == [], mark


PARTS = PROLOGUE + """
class Head(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(3, 3, bias=False)

    def forward(self, x):
        return self.inner(x)  # @late


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
        self.head = torch.nn.Linear(3, 3)  # another store of the same name

    def forward(self, x):
        return self.head(self.body(x))


def adapt(model):
    model.head = Head()  # @put


model = Net().cuda()
adapt(model)
attempt(model, gpu(2, 3))
"""


def test_the_line_that_puts_a_part_into_a_moved_model_is_told(run_python):
    evidence = Evidence(run_python(PARTS, sim=1), PARTS)
    assert evidence.of("late", "module-put-at") == [("put", "Net.head")]


WAYS = PROLOGUE + """
class Kept:
    def __init__(self):
        self.kept = {}

    def park(self, **values):
        self.kept = {name: value.cpu() for name, value in values.items()}  # @kept

    def use(self, work):
        kwargs = dict(self.kept)  # @kwargs
        return work(**kwargs)


def times(value, scale):
    part = value[:2]  # @part
    return part.abs() * scale  # @temporary


def of_arguments():
    keeper = Kept()
    keeper.park(value=gpu())
    keeper.use(lambda value: gpu() + value)  # @parked


def of_temporary():
    rows = [torch.ones(3)]  # @rows
    for row in rows:  # @row
        times(row, scale=gpu(2))


def of_other_device():
    table, index = gpu(), torch.zeros(1, dtype=torch.long)
    moved = index.to(table.device)
    fresh = torch.ones(1)  # @fresh
    table[moved] + fresh  # @fresh used


class Store:
    def __init__(self):
        self.rows = torch.ones(4)  # @rows of store

    def draw(self):
        chosen = torch.zeros(2, dtype=torch.long)
        return self.rows[chosen.to("cuda")]  # @drawn


attempt(of_arguments)
attempt(of_temporary)
attempt(of_other_device)
attempt(Store().draw)
"""


def test_what_hands_a_value_on_without_an_operator_leads_to_the_failing_line(run_python):
    evidence = Evidence(run_python(WAYS, sim=1), WAYS)
    assert evidence.of("parked", "came-through-at")[:1] == [("kwargs", "kwargs")]
    assert ("kept", "self.kept") in evidence.of("parked", "came-through-at")
    assert evidence.of("temporary", "came-through-at") == [("part", "part"), ("rows", "rows")]
    assert evidence.of("temporary", "bound-at") == [("row", "row")]
    assert evidence.of("drawn", "came-through-at") == [("rows of store", "self.rows")]
    through = evidence.of("fresh used", "came-through-at")
    assert through == [] and evidence.of("fresh used", "bound-at") == [("fresh", "fresh")]
