"""What is found out about values that outlive the call that made them: caches, copies, files, constructions."""

from evidence_programs import PROLOGUE, Evidence

GUARDS = PROLOGUE + """
class Early:
    table = None

    def build(self, device):
        if self.table is not None:  # @returns early
            return
        self.table = torch.ones(3, device=device)

    def use(self, x):
        self.build(x.device)
        return x + self.table  # @early


class Around:
    def __init__(self):
        self.length, self.table = 0, None

    def build(self, n, device):
        self.table, self.length = torch.ones(n, device=device), n

    def use(self, x):
        if len(x) > self.length:  # @guard around
            self.build(len(x), x.device)
        return x + self.table  # @around


class Careful:
    table = None

    def build(self, device):
        if self.table is not None and self.table.device == device:
            return
        self.table = torch.ones(3, device="cpu")

    def use(self, x):
        self.build(x.device)
        return x + self.table  # @careful


def again(cache):
    cache.use(torch.ones(3))
    cache.use(gpu())


for kind in (Early, Around, Careful):
    attempt(again, kind())
"""


def test_the_condition_that_uses_a_kept_value_again_is_told_unless_it_looks_at_the_device(run_python):
    evidence = Evidence(run_python(GUARDS, sim=1), GUARDS)
    assert evidence.of("early", "cache-guard-at") == [("returns early", "if self.table is not None:")]
    assert evidence.of("around", "cache-guard-at") == [("guard around", "if len(x) > self.length:")]
    assert evidence.of("careful", "cache-guard-at") == []


RESTORED = PROLOGUE + """
import pickle


class Store:
    def __init__(self, device):
        self.device = device

    def sample(self):
        return torch.ones(3).to(self.device)


class Agent:
    def __init__(self, device):
        self.device, self.store = device, Store(device)

    def load(self, blob):
        self.store = pickle.loads(blob)  # @loads

    def learn(self):
        return self.store.sample() + torch.ones(3, device=self.device)  # @fails


class Told:
    def __init__(self, device):
        self.device, self.kept = device, Store("cuda:1")

    def learn(self):
        return self.kept.sample() + torch.ones(3, device=self.device)  # @told


agent = Agent("cuda:0")
agent.load(pickle.dumps(Store("cuda:1")))
attempt(agent.learn)
attempt(Told("cuda:0").learn)
"""


def test_an_object_out_of_a_file_that_remembers_a_device_is_told_with_the_line_that_loads_it(run_python):
    evidence = Evidence(run_python(RESTORED, sim=2), RESTORED)
    operands = evidence.of_all("fails", "restored-at")
    assert operands == [("loads", "store.device")]
    assert evidence.of_all("told", "restored-at") == []


COPIES = PROLOGUE + """
import copy


class Agent:
    def __init__(self, moved):
        self.net = torch.nn.Linear(3, 3)  # @original
        self.target = copy.deepcopy(self.net)
        if moved:
            self.net.to("cuda")

    def use(self):
        return self.target(gpu(2, 3))  # @copied

    def use_beside(self):
        return self.target(gpu(2, 3))  # @beside


attempt(Agent(False).use)
attempt(Agent(True).use_beside)
"""


def test_a_copy_of_a_module_that_was_not_moved_either_is_told_where_the_original_is_stored(run_python):
    evidence = Evidence(run_python(COPIES, sim=1), COPIES)
    assert set(evidence.of_all("copied", "copy-of-module-at")) == {("original", "self.net")}
    assert evidence.of_all("beside", "copy-of-module-at") == []


KEPT_BUFFERS = PROLOGUE + """
import functools


def scaled(x, kernel):
    weight = kernel.expand(2, 3)
    return x * weight  # @partial


class Bank(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kernel", torch.ones(3))
        self.op = functools.partial(scaled, kernel=self.kernel)  # @made partial
        self.table = {name: getattr(self, name) for name in ("kernel",)}  # @made table

    def by_partial(self, x):
        return self.op(x)

    def by_table(self, x):
        row = self.table["kernel"].view(1, 3)
        return x * row  # @table


bank = Bank().cuda()
attempt(bank.by_partial, gpu(2, 3))
attempt(bank.by_table, gpu(2, 3))
"""


def test_who_keeps_a_buffer_from_before_the_move_is_told_also_of_views_of_it(run_python):
    evidence = Evidence(run_python(KEPT_BUFFERS, sim=1), KEPT_BUFFERS)
    assert [at for at, _ in evidence.of("partial", "kept-from-before-move")] in (["made partial"], ["made table"])
    assert [at for at, _ in evidence.of("table", "kept-from-before-move")] in (["made partial"], ["made table"])


CONSTRUCTIONS = PROLOGUE + """
def counts():
    return torch.ones(3)


class Keeps(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.zeros(3)

    def _apply(self, fn):  # @own apply
        super()._apply(fn)
        self.table = fn(self.table)
        return self

    def forward(self, x):
        return x + self.table  # @applied


class Plain(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.zeros(3)

    def forward(self, x):
        return x + self.table  # @plain


def weighted():
    loss = torch.nn.CrossEntropyLoss(weight=counts())  # @given
    loss(gpu(2, 3), torch.zeros(2, dtype=torch.long, device="cuda"))  # @weighted


attempt(weighted)
attempt(Keeps(), gpu())
attempt(Plain(), gpu())
"""


def test_a_weight_is_told_where_its_module_is_given_it_and_an_apply_of_the_modules_own_where_it_stands(run_python):
    evidence = Evidence(run_python(CONSTRUCTIONS, sim=1), CONSTRUCTIONS)
    assert evidence.of("weighted", "weight-given-at") == [("given", "CrossEntropyLoss.weight")]
    assert [at for at, _ in evidence.of("applied", "own-apply-at")] == ["own apply"]
    assert evidence.of("plain", "own-apply-at") == []


ENTRIES = PROLOGUE + """
class Keeper(torch.optim.SGD):
    pass


class Factors:
    def __init__(self):
        self.factors = {0: [gpu(), gpu()]}

    def restore(self, saved):
        for key, value in saved.items():
            self.factors[key] = list(value)  # @puts

    def use(self):
        for key, (left, right) in self.factors.items():
            left.add_(gpu())  # @entry


def state_of(order, states):
    for index, state in states.items():
        optimizer.state[order[index]] = state  # @state


factors = Factors()
factors.restore({0: [torch.ones(3), torch.ones(3)]})
attempt(factors.use)

parameter = torch.nn.Parameter(gpu())
optimizer = Keeper([parameter], lr=0.1, momentum=0.9)
state_of([parameter], {0: {"momentum_buffer": torch.ones(3)}})
parameter.grad = gpu()


def step():
    optimizer.step()  # @step


attempt(step)
"""


def test_entries_that_a_loop_or_an_optimizer_takes_out_are_told_where_they_were_put(run_python):
    evidence = Evidence(run_python(ENTRIES, sim=1), ENTRIES)
    assert evidence.of("entry", "entry-put-at") == [("puts", "self.factors")]
    assert [at for at, _ in evidence.of("step", "optimizer-state")] == ["state"]


BLOCKS = PROLOGUE + """
import numpy


def points():
    return torch.from_numpy(numpy.ones(3, "f4"))


with torch.device("cuda"):  # @block
    made = torch.ones(3)
attempt(lambda: made + points())  # @in block
"""


def test_what_a_block_makes_on_its_default_device_is_told_with_the_block(run_python):
    evidence = Evidence(run_python(BLOCKS, sim=1), BLOCKS)
    assert evidence.of_all("in block", "default-device-block-at") == [("block", None)]


HOST_WORK = PROLOGUE + """
def measure(x, y):
    first = x.cpu()
    second = y.cpu()
    return first + second + gpu()  # @measured


attempt(measure, gpu(), gpu())
"""


def test_lines_of_a_function_that_bring_values_to_the_host_are_counted(run_python):
    evidence = Evidence(run_python(HOST_WORK, sim=1), HOST_WORK)
    assert evidence.of("measured", "host-work") == [(None, "2")]
