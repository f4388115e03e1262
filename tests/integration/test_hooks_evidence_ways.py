"""The ways by which a value comes to where it fails without an operator, and what lies on them: functions that hand it
back, one of several assignments, the condition of a loop, a class, a storage, the input of a backward."""

from evidence_programs import PROLOGUE, Evidence
from hooks_programs import found_at, odd_operand

HANDED = PROLOGUE + """
class Predictor:
    def __init__(self):
        self.model = torch.nn.Linear(3, 3)

    def raw(self, x):
        return self.model(x)  # @inner

    def __call__(self, x):
        found = self.raw(x)
        return self.raw(x)  # @outer


def many(x):
    if x is None:
        return 1
    if x == 1:
        return 2
    if x == 2:
        return 3
    return torch.zeros(3)


def by_object(predict):
    guess = predict(torch.ones(3))
    guess + gpu()  # @by object


def by_many_returns():
    guess = many(0.5)
    guess + gpu()  # @by many


def by_either(masks, first):
    if first:
        mask = masks["low"]  # @either
    else:
        mask = masks["high"]  # @or
    for _ in range(2):
        kept = mask
        if first:
            mask = kept  # @again
    mask + gpu()  # @by either


attempt(by_object, Predictor())
attempt(by_many_returns)
attempt(by_either, {"low": torch.zeros(3), "high": torch.ones(3)}, True)
"""


def test_the_lines_that_hand_a_value_back_are_told(run_python):
    evidence = Evidence(run_python(HANDED, sim=1), HANDED)
    assert evidence.of("by object", "handed-back-at") == [("outer", "predict"), ("inner", "self.raw")]
    assert evidence.of("by many", "handed-back-at") == []


def test_each_of_several_assignments_is_told_where_none_is_certain(run_python):
    evidence = Evidence(run_python(HANDED, sim=1), HANDED)
    marks = [mark for mark, name in evidence.of("by either", "perhaps-bound-at") if name == "mask"]
    assert sorted(marks) == ["again", "either", "or"]
    assert evidence.of("by object", "perhaps-bound-at") == []


CHOSEN = PROLOGUE + """
class Adapter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.low_a, self.low_b = torch.nn.Linear(3, 2), torch.nn.Linear(2, 3)
        self.scale = torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.scale.weight[0] * 2 + self.low_b(self.low_a(x))  # @fails


def place(adapter, tests):
    for name, part in adapter.named_modules():
        if "low_" in name:  # @condition
            part.to("cuda")
    return adapter


def place_unless_empty(adapter):
    if torch.cuda.is_available():
        for part in (adapter.low_a, adapter.low_b):
            part.to("cuda")
    return adapter


attempt(place(Adapter(), True), gpu())
"""


def test_the_condition_by_which_a_loop_chooses_the_modules_that_it_moves_is_told(run_python):
    evidence = Evidence(run_python(CHOSEN, sim=1), CHOSEN)
    assert evidence.of("fails", "modules-chosen-at") == [("condition", "scale")]


def test_a_condition_around_the_loop_is_none_that_chooses(run_python):
    source = CHOSEN.replace("attempt(place(Adapter(), True), gpu())", "attempt(place_unless_empty(Adapter()), gpu())")
    assert Evidence(run_python(source, sim=1), source).of("fails", "modules-chosen-at") == []


MET = PROLOGUE + """
def bump(n, device=None):
    return torch.zeros(n, device="cpu" if device is None else device)


def bump_on(n, device="cpu"):
    return torch.zeros(n, device=device)


def joined(windows):
    weight = bump(3)  # @call
    windows * weight  # @fails


def joined_later():
    weight = bump(3)
    windows = gpu()
    windows * weight  # @too late


def joined_by_default(windows):
    weight = bump_on(3)
    windows * weight  # @other default


attempt(joined, gpu())
attempt(joined_later)
attempt(joined_by_default, gpu())
"""


def test_a_call_that_could_be_given_the_device_of_what_its_result_meets_is_told(run_python):
    evidence = Evidence(run_python(MET, sim=1), MET)
    assert evidence.of("fails", "device-not-given-at") == [("call", "device=windows.device")]
    for mark in ("too late", "other default"):
        assert evidence.of(mark, "device-not-given-at") == [], mark


MAKERS = PROLOGUE + """
def tokens_of(texts):
    return torch.zeros(len(texts))


def tokens_like(rows):
    return torch.zeros(rows.shape[0])


def tokens_on(texts, device="cpu"):
    return torch.zeros(len(texts), device=device)


class Encoder:
    def __init__(self):
        self.device = torch.device("cuda")

    def taken(self, x):
        tokens = tokens_of("abc")  # @takes
        tokens + x  # @taken

    def in_shape(self, x):
        tokens = tokens_like(torch.ones(3))
        tokens + x  # @in shape

    def told(self, x):
        tokens = tokens_on("abc")
        tokens + x  # @told


class Homeless:
    def taken(self, x):
        tokens = tokens_of("abc")
        tokens + x  # @homeless


attempt(Encoder().taken, gpu())
attempt(Encoder().in_shape, gpu())
attempt(Encoder().told, gpu())
attempt(Homeless().taken, gpu())
"""


def test_an_object_with_a_device_that_takes_what_a_helper_without_one_made_is_told(run_python):
    evidence = Evidence(run_python(MAKERS, sim=1), MAKERS)
    assert evidence.of("taken", "taken-from-maker-at") == [("takes", "self.device")]
    for mark in ("in shape", "told", "homeless"):
        assert evidence.of(mark, "taken-from-maker-at") == [], mark


BRANCHES = PROLOGUE + """
def ready(batch):
    out = {}
    for name, value in batch.items():
        if torch.is_tensor(value):
            out[name] = value.to("cuda")
        else:
            out[name] = value  # @as it is
    return out


def compute(x, mask, waves):
    mask + x + waves[0]  # @fails


attempt(lambda batch: compute(**ready(batch)), {
    "x": torch.ones(3), "mask": torch.ones(3), "waves": [torch.ones(3)]})
"""


def test_the_branch_that_puts_things_as_they_are_is_told_beside_the_one_that_moves(run_python):
    evidence = Evidence(run_python(BRANCHES, sim=1), BRANCHES)
    assert [mark for mark, _ in evidence.of("fails", "put-as-it-is-at")] == ["as it is"]


OF_CLASS = PROLOGUE + """
class Check:
    unit = None
    codes = {"low": torch.zeros(3)}

    @classmethod
    def of(cls, like):
        if cls.unit is None:
            cls.unit = torch.ones(3, device=like.device)
        return cls.unit

    def fails(self, x):
        x * Check.unit  # @unit
    def fails_too(self, x):
        x * self.codes["low"]  # @codes


Check.of(torch.ones(3))
attempt(Check().fails, gpu())
attempt(Check().fails_too, gpu())
"""


def test_what_a_class_keeps_is_found_and_named(run_python):
    result = run_python(OF_CLASS, sim=1)
    assert result.status == 0, result.stderr
    assert odd_operand(found_at(result, OF_CLASS, "unit"))["name"] == "Check.unit"
    assert odd_operand(found_at(result, OF_CLASS, "codes"))["name"] in ("Check.codes['low']", 'self.codes["low"]')


STORAGE = PROLOGUE + """
def view_of(rows):
    view = torch.empty(0)  # @made
    view.set_(rows.untyped_storage(), 0, (3,))  # @fails


rows = gpu()
attempt(view_of, rows)
"""


def test_a_storage_is_an_operand_and_has_the_history_of_its_memory(run_python):
    result = run_python(STORAGE, sim=1)
    assert result.status == 0, result.stderr
    finding = found_at(result, STORAGE, "fails")
    assert [(one["arg"], one["device"], one["odd"]) for one in finding["operands"]] == [
        ("self", "cpu", True), ("source", "cuda:0", False)]
    assert finding["operands"][1]["lineage"][0]["function"] == "gpu"
    assert finding["root_cause"]["line"] == STORAGE.splitlines().index("    view = torch.empty(0)  # @made") + 1


NESTED = PROLOGUE + """
class Inner(torch.autograd.Function):
    @staticmethod
    def forward(ctx, flat, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, outer):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            begin = x.detach().requires_grad_()
            (inner,) = torch.autograd.grad((begin * 3).sum(), begin)
        return inner, inner


leaf = torch.ones(3, requires_grad=True)  # @leaf
made = leaf * 2  # @made
of_leaf = Inner.apply(leaf, gpu().requires_grad_())
attempt(of_leaf.sum().backward)  # @backward
of_made = Inner.apply(made, gpu().requires_grad_())
attempt(of_made.sum().backward)  # @backward
"""


def test_a_backward_inside_of_a_backward_leaves_the_line_of_the_outer_one(run_python):
    result = run_python(NESTED, sim=1)
    assert result.status == 0, result.stderr
    lines = NESTED.splitlines()
    places = {finding["where"]["line"] for finding in result.raised()}
    assert places & {number for number, line in enumerate(lines, 1) if "attempt(" in line or "body(*args)" in line}
    assert all("autograd.grad" not in lines[place - 1] for place in places)


def test_the_input_of_a_refused_gradient_has_the_history_of_the_forward(run_python):
    result = run_python(NESTED, sim=1)
    lines = NESTED.splitlines()
    told = set()
    for finding in result.raised():
        for operand in finding["operands"]:
            if operand["arg"].startswith("inputs["):
                told |= {lines[step["line"] - 1].split("# @")[-1] for step in operand["lineage"][:1]}
    assert told == {"leaf", "made"}
