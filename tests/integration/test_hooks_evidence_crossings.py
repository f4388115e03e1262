"""What is found out about values that pass from one accelerator to another, and about moves that left something out."""

from evidence_programs import PROLOGUE, Evidence

DROPPED = PROLOGUE + """
def returned(x):
    return x.cuda()


def by_variable(x):
    there = x.cuda()
    there = there * 2
    return there


def kept_inside(x):
    there = x.cuda()
    print(there.sum().item())


def drops():
    x = torch.ones(3)
    returned(x)  # @call of drops
    x + gpu()  # @drops


def drops_variable():
    x = torch.ones(3)
    by_variable(x)  # @call of variable
    x + gpu()  # @variable


def uses_both():
    x = torch.ones(3)
    y = returned(x)
    x + y  # @both


def for_its_effect():
    x = torch.ones(3)
    kept_inside(x)
    x + gpu()  # @effect


for body in (drops, drops_variable, uses_both, for_its_effect):
    attempt(body)
"""


def test_copies_that_a_helper_returns_to_nobody_are_told_and_no_others(run_python):
    evidence = Evidence(run_python(DROPPED, sim=1), DROPPED)
    assert evidence.of("drops", "result-dropped-at") == [("call of drops", "returned")]
    assert evidence.of("variable", "result-dropped-at") == [("call of variable", "by_variable")]
    for mark in ("both", "effect"):
        assert evidence.of(mark, "result-dropped-at") == [], mark


OWN_MOVES = PROLOGUE + """
class Agent:
    def __init__(self):
        self.net, self.copy = torch.nn.Linear(3, 3, bias=False), torch.nn.Linear(3, 3, bias=False)
        self.scale, self.shift = torch.ones(3), torch.ones(3)

    def to(self, device):
        self.net.to(device)
        self.scale = self.scale.to(device)  # @own move
        return self


class Whole(Agent):
    def to(self, device):
        super().to(device)
        for part in ("copy", "shift"):
            setattr(self, part, getattr(self, part).to(device))
        return self


def forgotten():
    agent = Agent().to("cuda")
    agent.shift + agent.scale  # @tensor


def forgotten_module():
    agent = Agent().to("cuda")
    agent.copy(agent.scale)  # @module


def never_called():
    agent = Agent()
    agent.shift + gpu()  # @never


def named_in_another_way():
    agent = Whole().to("cuda")
    agent.shift = agent.shift.cpu()
    agent.shift + agent.scale  # @whole


for body in (forgotten, forgotten_module, never_called, named_in_another_way):
    attempt(body)
"""


def test_parts_that_an_objects_own_move_forgets_are_told_where_it_moved_others(run_python):
    evidence = Evidence(run_python(OWN_MOVES, sim=1), OWN_MOVES)
    assert evidence.of("tensor", "left-by-own-move") == [("own move", "Agent.shift")]
    assert evidence.of("module", "left-by-own-move") == [("own move", "Agent.copy")]
    assert evidence.of("never", "left-by-own-move") == []


LISTED = PROLOGUE + """
def listed(state):
    for name in ("first", "second"):  # @names
        state[name] = state[name].cuda()
    state["first"] + state["third"]  # @listed


def all_of_some(state):
    for name in sorted(state)[:2]:
        state[name] = state[name].cuda()
    state["first"] + state["third"]  # @computed


for body in (listed, all_of_some):
    attempt(body, {name: torch.ones(3) for name in ("first", "second", "third")})


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(3))
        self.a, self.b = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.scale * x  # @own parameter


def dispatched():
    net = Net()
    for child in net.children():  # @children
        child.to("cuda")
    net(gpu())


attempt(dispatched)
"""


def test_a_loop_over_names_or_children_is_told_for_what_is_not_among_them(run_python):
    evidence = Evidence(run_python(LISTED, sim=1), LISTED)
    assert evidence.of("listed", "names-listed-at") == [("names", "third")]
    assert evidence.of("computed", "names-listed-at") == []
    assert evidence.of("own parameter", "children-moved-at") == [("children", "Net")]


CROSSINGS = PROLOGUE + """
class Part(torch.nn.Module):
    def __init__(self, device):
        super().__init__()
        self.body = torch.nn.Linear(3, 3).to(device)

    def forward(self, x):
        return self.body(x)  # @part


class Weighted(Part):
    def forward(self, x, bias=None):
        return self.inner(x)

    def inner(self, x):
        return x * self.body.weight[0]  # @weighted


class Tilted(Part):
    def forward(self, x, tables):
        return self.body(x) * tables  # @tilted


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Part("cuda:0"), Weighted("cuda:1")

    def forward(self, x):
        h = self.first(x)
        return self.second(h)  # @handed over


def sequence():
    torch.nn.Sequential(Part("cuda:0"), Part("cuda:1"))(torch.ones(2, 3, device="cuda:0"))


def beside(x, tables, parts):
    for part in parts:
        x = x.to(part.body.weight.device)  # @moved beside
        x = part(x, tables)  # @given beside
    return x


def answered(x, first, second):
    there = second(x.to("cuda:1"))  # @answer
    return first(x) + there  # @answered


attempt(lambda: Model()(torch.ones(2, 3, device="cuda:0")))
attempt(sequence)
attempt(answered, torch.ones(2, 3, device="cuda:0"), Part("cuda:0"), Part("cuda:1"))
attempt(beside, torch.ones(2, 3, device="cuda:0"), torch.ones(3, device="cuda:0"), [Tilted("cuda:0"), Tilted("cuda:1")])
"""


def test_the_line_between_two_accelerators_is_told_unless_torch_itself_hands_over(run_python):
    evidence = Evidence(run_python(CROSSINGS, sim=2), CROSSINGS)
    assert evidence.of("weighted", "crossing-at") == [("handed over", "h")]
    assert evidence.of("part", "crossing-at") == []
    assert evidence.of("answered", "crossing-at") == [("answer", "there")]
    assert evidence.of("tilted", "crossing-at") == [("given beside", "tables")]
    assert evidence.of("tilted", "crossing-beside-at") == [("moved beside", "x")]
    assert evidence.of("weighted", "crossing-beside-at") == []
