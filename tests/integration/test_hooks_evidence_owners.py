"""What owns an odd operand: modules, optimizers, functions; and copies of it that were made."""

from evidence_programs import PROLOGUE, Evidence
from hooks_programs import found_at, odd_operand

MODULES = PROLOGUE + """
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.proj(x)  # @block


class Listed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = [Block() for _ in range(2)]  # @set listed
        self.head = torch.nn.Linear(3, 3)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


class Wrapped(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Plain()  # @set wrapped
        self.inner.table = {"a": torch.nn.Linear(3, 3)}

    def forward(self, x):
        return self.inner.table["a"](x)  # @wrapped


class Registered(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = torch.nn.ModuleList([torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)])
        self.order = [self.stages[1]]

    def forward(self, x):
        return self.order[0](x)  # @registered


class Back(torch.nn.Module):
    def __init__(self, parent):
        super().__init__()
        self.parent = [parent]


class Parent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.child = Back(self)

    def forward(self, x):
        return x + self.weight  # @parent


attempt(Listed().to("cuda"), gpu(1, 3))
attempt(Wrapped().to("cuda"), gpu(1, 3))
model = torch.nn.Sequential(Registered())
attempt(model, gpu(1, 3))
attempt(Parent(), gpu())
"""


def weights(evidence, mark, kind):
    """Of the odd parameter called weight: a linear layer has two."""
    finding = found_at(evidence.result, evidence.source, mark)
    [operand] = [o for o in finding["operands"] if o["odd"] and o["name"].endswith("weight")]
    return [(evidence.mark_of(e), e["text"]) for e in operand.get("evidence", []) if e["kind"] == kind]


def test_a_module_that_another_keeps_without_registering_it_is_told(run_python):
    evidence = Evidence(run_python(MODULES, sim=1), MODULES)
    assert weights(evidence, "block", "module-not-registered") == [("set listed", "Listed.blocks[0]")]
    assert weights(evidence, "wrapped", "module-not-registered") == [("set wrapped", "Wrapped.inner.table['a']")]
    assert weights(evidence, "registered", "module-not-registered") == []
    assert weights(evidence, "parent", "module-not-registered") == []


def test_a_parameter_has_its_name_from_the_outermost_module(run_python):
    evidence = Evidence(run_python(MODULES, sim=1), MODULES)
    assert weights(evidence, "registered", "root-name") == [(None, "0.stages.1.weight")]
    assert weights(evidence, "block", "root-name") == [(None, "proj.weight")]
    assert weights(evidence, "parent", "root-name") == []


HOOKED = PROLOGUE + """
def to_gpu(module, inputs):
    return tuple(x.to("cuda") for x in inputs)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = torch.nn.Linear(3, 3)
        self.plain = torch.nn.Linear(3, 3)

    def forward(self, x):
        return torch.nn.functional.linear(x, self.proj.weight)  # @hooked

    def other(self, x):
        return torch.nn.functional.linear(x, self.plain.weight)  # @unhooked


net = Net()
net.proj.register_forward_pre_hook(to_gpu)  # @set hook
attempt(net, gpu(1, 3))
attempt(net.other, gpu(1, 3))
"""


def test_hooks_of_the_module_that_owns_the_operand_are_told(run_python):
    evidence = Evidence(run_python(HOOKED, sim=1), HOOKED)
    assert evidence.of("hooked", "owner-forward-hook") == [("set hook", "to_gpu")]
    assert evidence.of("unhooked", "owner-forward-hook") == []


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
                    state["velocity"] = torch.zeros(p.shape)  # @set velocity
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
                state[key] = value.cpu()  # @set moved
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
    evidence = Evidence(run_python(OPTIMIZERS, sim=1), OPTIMIZERS)
    expected = {
        "velocity": ("set velocity", "velocity of 0.weight"),
        "moved": ("set moved", "exp_avg of 0.weight"),
        "restored": (None, "exp_avg of 0.weight"),
    }
    for mark, (line, name) in expected.items():
        assert evidence.of(mark, "optimizer-state") == [(line, name)], mark
        assert odd_operand(found_at(evidence.result, OPTIMIZERS, mark))["name"] == name


FUNCTIONS = PROLOGUE + """
class Scaled:
    def __init__(self, scale=torch.ones(3)):  # @set attribute
        self.scale = scale

    def __call__(self, x):
        return x + self.scale  # @attribute


@torch.no_grad()
def shift(x, *, by=torch.ones(3)):  # @set keyword
    return x + by  # @keyword


def given(x, by=None):
    return x + by  # @given


attempt(Scaled(), gpu())
attempt(shift, gpu())
attempt(given, gpu(), torch.ones(3))
"""


def test_an_operand_that_is_a_default_value_is_told_with_its_function(run_python):
    evidence = Evidence(run_python(FUNCTIONS, sim=1), FUNCTIONS)
    assert evidence.of("attribute", "default-argument") == [("set attribute", "Scaled.__init__(scale)")]
    assert evidence.of("keyword", "default-argument") == [("set keyword", "shift(by)")]
    assert evidence.of("given", "default-argument") == []


COPIES = PROLOGUE + """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.ones(3))
        self.alias = self.table

    def forward(self, x):
        return x + self.alias  # @alias


def dropped():
    batch = torch.ones(3)
    batch.to("cuda")  # @set dropped
    gpu() + batch  # @dropped


def never():
    batch = torch.ones(3)
    twin = torch.ones(3)
    twin.to("cuda")
    gpu() + batch  # @never


def elsewhere():
    batch = torch.ones(3)
    batch.to("cuda:1")
    gpu() + batch  # @elsewhere


def reused():
    for _ in range(100):
        torch.ones(3).to("cuda")
        batch = torch.ones(3)
        try:
            gpu() + batch  # @reused
        except RuntimeError:
            pass
        batch.to("cuda:1")
        del batch


attempt(dropped)
attempt(never)
attempt(elsewhere)
reused()
net = Net()
net.to("cuda")  # @set alias
attempt(net, gpu())
"""


def test_an_operand_that_stayed_behind_its_copy_is_told(run_python):
    evidence = Evidence(run_python(COPIES, sim=2), COPIES)
    assert evidence.of("dropped", "copied-away") == [("set dropped", "cuda:0")]
    assert evidence.of("alias", "copied-away") == []
    assert evidence.of("alias", "moved-with-module") == [("set alias", "cuda:0")]
    for mark in ("never", "elsewhere", "reused"):
        assert evidence.of(mark, "copied-away") == [], mark


HOSTILE = PROLOGUE + """
calls = []


class Meta(type):
    def __getattribute__(cls, name):
        calls.append("meta " + name)
        return super().__getattribute__(name)


class Hostile(torch.nn.Module, metaclass=Meta):
    def __init__(self):
        super().__init__()
        self.mask = torch.ones(3)  # @set mask

    def __getattribute__(self, name):
        calls.append(name)
        return super().__getattribute__(name)

    @property
    def state(self):
        calls.append("state")

    def __eq__(self, other):
        calls.append("eq")
        return True

    def __hash__(self):
        calls.append("hash")
        return 1


class HostileKey(str):
    def __eq__(self, other):
        calls.append("key eq")
        return True

    def __hash__(self):
        calls.append("key hash")
        return hash("param_groups")


def program(hostile, mask, left):
    optimizer = Plain()
    optimizer.__dict__.update({"_parameters": {}, "_buffers": {}, HostileKey("param_groups"): []})
    optimizer.state = {left: {"key": mask}}
    optimizer.mask = mask
    calls.clear()
    try:
        left + mask  # @hostile
    except RuntimeError:
        pass
    print(calls)


hostile = Hostile()
program(hostile, hostile.mask, gpu())
"""


def test_looking_for_evidence_runs_no_code_of_the_program(run_python):
    result = run_python(HOSTILE, sim=1)
    assert (result.status, result.stdout) == (0, "[]\n"), result.stderr


KEPT = PROLOGUE + """
masks = {}


def mask(size):
    if size not in masks:
        masks[size] = torch.ones(size)
    return masks[size]


def through_a_variable():
    chosen = mask(3)
    gpu() + chosen  # @variable


def at_once():
    gpu() + masks[3]  # @at once


def of_one_call():
    own = {3: torch.ones(3)}
    chosen = own[3]
    gpu() + chosen  # @own


attempt(through_a_variable)
attempt(at_once)
attempt(of_one_call)
"""


def test_an_entry_that_a_global_dictionary_keeps_is_told(run_python):
    evidence = Evidence(run_python(KEPT, sim=1), KEPT)
    assert evidence.of("variable", "held-by-global") == [(None, "masks")]
    assert evidence.of("at once", "held-by-global") == [(None, "masks")]
    assert evidence.of("own", "held-by-global") == []


GENERATORS = PROLOGUE + """
def draw(generator: torch.Generator):
    return torch.rand(3, device="cuda", generator=generator)  # @draw


def seeded(seed):
    assert not isinstance(seed, torch.Generator)
    return torch.Generator().manual_seed(seed)  # @make


attempt(draw, seeded(3))
"""


def test_the_only_line_that_makes_generators_is_told(run_python):
    evidence = Evidence(run_python(GENERATORS, sim=1), GENERATORS)
    assert evidence.of("draw", "generator-made-at") == [("make", None)]


def test_of_two_lines_that_make_generators_none_is_told(run_python):
    source = GENERATORS + "torch.Generator(device='cpu')\n"
    evidence = Evidence(run_python(source, sim=1), source)
    assert evidence.of("draw", "generator-made-at") == []
