"""Which operands a finding has, which of them is odd, and what else than a variable or an attribute they are called."""

from hooks_programs import HELPERS, found_at, line_of, odd_operand, steps_of

PROLOGUE = """\
import torch


""" + HELPERS

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
attempt(lambda: Check().fails(gpu()))
attempt(lambda: Check().fails_too(gpu()))
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
attempt(lambda: view_of(rows))
"""


def test_a_storage_is_an_operand_and_has_the_history_of_its_memory(run_python):
    result = run_python(STORAGE, sim=1)
    assert result.status == 0, result.stderr
    finding = found_at(result, STORAGE, "fails")
    assert [(one["arg"], one["device"], one["odd"]) for one in finding["operands"]] == [
        ("self", "cpu", True), ("source", "cuda:0", False)]
    assert finding["operands"][1]["lineage"][0]["function"] == "gpu"


OPTIMIZERS = PROLOGUE + """

class Momentum(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {"lr": 0.1})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["velocity"] = torch.zeros(p.shape)
                p.add_(state["velocity"])  # @velocity


def trained(make, device):
    net = torch.nn.Sequential(torch.nn.Linear(3, 3, bias=False)).to(device)
    net(torch.ones(1, 3, device=device)).sum().backward()
    return net, make(net.parameters())


def own():
    net, own_optimizer = trained(Momentum, "cuda")
    own_optimizer.step()


def moved():
    net, adam = trained(lambda p: torch.optim.Adam(p, foreach=False), "cuda")
    adam.step()
    for state in adam.state.values():
        for key, value in state.items():
            if key == "exp_avg":
                state[key] = value.cpu()
    adam.step()  # @moved


def restored():
    net, adam = trained(lambda p: torch.optim.Adam(p, foreach=False), "cpu")
    adam.step()
    net.to("cuda")
    for p in net.parameters():
        p.grad = torch.ones_like(p)
    adam.step()  # @restored


attempt(own)
attempt(moved)
attempt(restored)
"""


def test_state_of_an_optimizer_is_called_by_its_key_and_its_parameter(run_python):
    result = run_python(OPTIMIZERS, sim=1)
    assert result.status == 0, result.stderr
    for mark, name in (("velocity", "velocity"), ("moved", "exp_avg"), ("restored", "exp_avg")):
        assert odd_operand(found_at(result, OPTIMIZERS, mark))["name"] == f"{name} of 0.weight", mark


TOLD = PROLOGUE + """

class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(3))

    def forward(self, x, y):
        return combined(x, y)


def combined(x, y):
    return x + y  # @in module


def told(x, y, device):
    return x + y  # @told


def given(x, y, others):
    return x + y  # @given


def open_question(x, y):
    return x + y  # @open


zero, one = torch.ones(3, device="cuda:0"), torch.ones(3, device="cuda:1")
attempt(lambda: told(zero, one, torch.device("cuda:1")))
attempt(lambda: Scaled().to("cuda:1")(zero, one))
attempt(lambda: given(zero, one, [torch.ones(3, device="cuda:1")]))
attempt(lambda: open_question(zero, one))
"""


def test_of_two_accelerators_the_one_that_the_function_works_on_is_right(run_python):
    result = run_python(TOLD, sim=2)
    assert result.status == 0, result.stderr
    odd = {mark: odd_operand(found_at(result, TOLD, mark))["device"] for mark in ("told", "in module", "given", "open")}
    assert odd == {"told": "cuda:0", "in module": "cuda:0", "given": "cuda:0", "open": "cuda:1"}


ASKED = PROLOGUE + """

def rows_like(x):
    device = x.device
    return torch.arange(3, device=device)  # @made


def step(x, table):
    rows = rows_like(x)
    return table[0] + rows * 2  # @fails


x = torch.ones(3)  # @asked
attempt(lambda: step(x, [gpu()]))
"""


def test_what_is_made_on_the_device_of_a_tensor_has_the_history_of_that_behind_its_own(run_python):
    result = run_python(ASKED, sim=1)
    assert result.status == 0, result.stderr
    steps = steps_of(odd_operand(found_at(result, ASKED, "fails")))
    assert steps[-2:] == [(line_of(ASKED, "made"), "derived"), (line_of(ASKED, "asked"), "created")]
