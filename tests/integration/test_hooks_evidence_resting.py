"""What devsan finds out of values that rest where they are while a model works elsewhere: within objects that modules
keep, weights that are brought over for each use, what was taken over from a file, and what a function of another model
computes."""

from evidence_programs import PROLOGUE, Evidence

WITHIN = PROLOGUE + """
import dataclasses

from torch.distributions import AffineTransform


@dataclasses.dataclass
class Record:
    level: torch.Tensor


class Keeper:
    def __init__(self, level):
        self.level = level


class Net(torch.nn.Module):
    def __init__(self, way, kept):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)
        self.kept = kept  # @kept
        self.way = way

    def forward(self, x):
        return self.way(self, self.layer(x))


def by_transform(net, x):
    return net.kept[0](x)  # @transform


def by_record(net, x):
    return x + net.kept.level  # @record


def by_alias(net, x):
    level = net.kept.level
    return x + level  # @alias


def by_own_class(net, x):
    return x + net.kept.level  # @own class


def used(way, kept, device="cuda"):
    return lambda: Net(way, kept).to(device)(torch.ones(2, 3, device="cuda"))


attempt(used(by_transform, [AffineTransform(torch.ones(3), torch.ones(3))]))
attempt(used(by_record, Record(torch.ones(3))))
attempt(used(by_alias, Record(torch.ones(3))))
attempt(used(by_own_class, Keeper(torch.ones(3))))
"""


def test_what_an_object_keeps_is_told_of_where_a_module_that_runs_keeps_that(run_python):
    evidence = Evidence(run_python(WITHIN, sim=1), WITHIN)
    assert evidence.of("transform", "within-module-at") == [("kept", "Net.kept")]
    assert evidence.of("record", "within-module-at") == [("kept", "Net.kept")]


def test_nor_where_a_variable_or_a_line_of_the_object_itself_tells_of_it(run_python):
    evidence = Evidence(run_python(WITHIN, sim=1), WITHIN)
    assert evidence.of("alias", "within-module-at") == []
    assert evidence.of("own class", "within-module-at") == []
    assert [text for _, text in evidence.of("own class", "attribute-set-at")] == ["Keeper.level", "Net.kept"]


BROUGHT = PROLOGUE + """
class Lean(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.shift = torch.nn.Parameter(torch.ones(3, 3)), torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x @ self.weight.to(x.device) + self.shift.to(x.device)  # @brought


class Careful(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.gain = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        x = x * self.weight.to(x.device)
        return x + self.gain  # @one cast


class Net(torch.nn.Module):
    def __init__(self, device="cpu"):
        super().__init__()
        self.layer = Lean()
        self.table = torch.nn.Parameter(torch.ones(4, 3, device=device))

    def forward(self, x, rows):
        x = self.layer(x)
        taken = self.table[rows]
        return x + taken  # @taken


attempt(lambda: Net()(torch.ones(2, 3, device="cuda"), 1))
attempt(lambda: Net()(torch.ones(2, 3, device="cuda"), torch.tensor([1, 2])))
attempt(lambda: Careful()(torch.ones(2, 3, device="cuda")))
"""


def test_of_a_weight_it_is_told_where_others_of_its_model_are_brought_over(run_python):
    result = run_python(BROUGHT, sim=1)
    evidence = Evidence(result, BROUGHT)
    taken = [f for f in result.raised() if f["where"]["source"].strip().endswith("# @taken")]
    told = [(evidence.mark_of(e), e["text"]) for f in taken for o in f["operands"] for e in o.get("evidence", []) if e["kind"] == "weight-brought-at"]
    assert told and set(told) == {("brought", "Net")}
    assert evidence.of("one cast", "weight-brought-at") == []


LOADED = PROLOGUE + """
import io


class Best:
    def __init__(self):
        self.score = None

    def restore(self, saved):
        best = saved["best"] if "best" in saved else {}
        self.rounds, self.score = 1, best["score"]  # @taken over

    def update(self, score):
        if self.score is None or bool((score < self.score).all()):  # @score
            self.score = score


class Either:
    def __init__(self):
        self.score = None

    def one(self, saved):
        self.score = saved["best"]["score"]

    def other(self, saved):
        self.score = saved.get("other")

    def update(self, score):
        return score < self.score  # @either


file = io.BytesIO()
torch.save({"best": {"score": torch.ones(3)}}, file)
file.seek(0)
saved = torch.load(file, map_location="cpu")
best, either = Best(), Either()
best.restore(saved)
either.one(saved)
attempt(lambda: best.update(gpu()))
attempt(lambda: either.update(gpu()))
"""


def test_of_several_stores_the_one_that_takes_an_entry_keeps_what_was_loaded(run_python):
    evidence = Evidence(run_python(LOADED, sim=1), LOADED)
    assert evidence.of("score", "attribute-set-at") == [("taken over", "Best.score")]
    assert evidence.of("either", "attribute-set-at") == []


CLOSURES = PROLOGUE + """
import copy


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.ways = torch.nn.Linear(3, 3), []
        self.gain = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        for way in self.ways:
            x = way(x)
        return self.layer(x) * self.gain  # @copy


def wrap(layer):
    plain = layer.forward

    def wrapped(x):
        return plain(x.to(layer.weight.device))

    layer.forward = wrapped  # @wrapped


net = Net()
wrap(net.layer)
attempt(lambda: copy.deepcopy(net).to("cuda:1")(torch.ones(2, 3)))

teacher, student = Net(), Net().to("cuda:1")
student.ways.append(lambda x: teacher(x.cpu()))


def judge():
    y = student.ways[0](torch.ones(2, 3))
    return student.gain * y  # @teacher


student.forward = judge
attempt(lambda: student.forward())
"""


def test_what_a_function_of_the_original_computes_in_a_copy_is_told_of_where_that_is_stored(run_python):
    result = run_python(CLOSURES, sim=2)
    evidence = Evidence(result, CLOSURES)
    [copied] = [f for f in result.raised() if f["where"]["source"].strip().endswith("# @copy")]
    told = [(evidence.mark_of(e), e["text"]) for o in copied["operands"] for e in o.get("evidence", []) if e["kind"] == "closure-of-copy"]
    assert told == [("wrapped", "Linear.forward")]
    [other] = [f for f in result.raised() if f["where"]["source"].strip().endswith("# @teacher")]
    assert not [e for o in other["operands"] for e in o.get("evidence", []) if e["kind"] == "closure-of-copy"]
