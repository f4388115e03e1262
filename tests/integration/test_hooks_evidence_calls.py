"""What is found out about calls: a device that one leaves out, hooks that one goes past, and what comes out of files."""

from evidence_programs import PROLOGUE, Evidence

LEFT_OUT = PROLOGUE + """
def mask_of(n, device=None):
    return torch.zeros(n, device=device or "cpu")


def always_here(n, device="cpu"):
    return torch.zeros(n, device=device)


class Planner:
    def __init__(self, device):
        self.device = device

    def leaves_out(self):
        self.positions = torch.arange(3, device=self.device)
        self.mask = mask_of(3)  # @call
        self.mask + self.positions  # @left out

    def hands_on(self):
        self.positions = torch.arange(3, device=self.device)
        self.mask = mask_of(3, "cpu")
        self.mask + self.positions  # @handed on


def knows(x, device):
    mask = always_here(3)  # @own argument
    mask + x  # @knows


def knows_none(x):
    mask = always_here(3)
    mask + x  # @ignorant


attempt(Planner("cuda").leaves_out)
attempt(Planner("cuda").hands_on)
attempt(lambda: knows(gpu(), "cuda"))
attempt(lambda: knows_none(gpu()))
"""


def test_a_call_that_leaves_out_the_device_which_its_function_knows_is_told(run_python):
    evidence = Evidence(run_python(LEFT_OUT, sim=1), LEFT_OUT)
    assert evidence.of("left out", "device-not-given-at") == [("call", "device=self.device")]
    assert evidence.of("knows", "device-not-given-at") == [("own argument", "device=device")]
    for mark in ("handed on", "ignorant"):
        assert evidence.of(mark, "device-not-given-at") == [], mark


UNUSED = PROLOGUE + """
def converted(batch, device):
    data = dict(batch)  # @makes
    data["count"] = len(batch)
    return data


def moved(batch, device):
    data = {key: value.to("cpu", copy=True) for key, value in batch.items()}
    data["device"] = device
    return data


def use(data):
    data["x"] + gpu()  # @used


def use_moved(data):
    data["x"] + gpu()  # @moved before


def bound():
    data = converted({"x": torch.ones(3)}, device="cuda")
    data["x"] + gpu()  # @bound


attempt(lambda: use(converted({"x": torch.ones(3)}, device="cuda")))
attempt(lambda: use_moved(moved({"x": torch.ones(3)}, device="cuda")))
attempt(bound)
"""


def test_a_function_that_never_looks_at_its_device_is_told_with_the_line_that_makes_what_it_returns(run_python):
    evidence = Evidence(run_python(UNUSED, sim=1), UNUSED)
    for mark in ("used", "bound"):
        assert evidence.of(mark, "device-unused-at") == [("makes", "device")], mark
    assert evidence.of("moved before", "device-unused-at") == []


HOOKS = PROLOGUE + """
class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, x, y=0):
        return x * self.weight + y  # @fails


class Wrapper(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner.forward(x)  # @past


class Kept(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.run = inner.forward  # @kept

    def forward(self, x):
        return self.run(x)


class Plain(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)


def bring(module, args):
    return tuple(one.cuda() for one in args)


def first_alone(module, args):
    return (args[0].cuda(), *args[1:])  # @leaves


def placed(hook=bring):
    inner = Scale().cuda()
    inner.register_forward_pre_hook(hook)
    return inner


x = torch.ones(3)
KIND = {"past": lambda: Wrapper(placed())(x),
        "kept": lambda: Kept(placed())(x),
        "unhooked": lambda: Wrapper(Scale().cuda())(x),
        "called": lambda: Plain(placed(lambda module, args: args))(x),
        "leaves": lambda: placed(first_alone)(x, torch.ones(3))}
import sys
attempt(KIND[sys.argv[1]])
"""


def test_a_forward_that_is_called_past_hooks_is_told_where_it_is_called_or_kept(run_python):
    def of(kind, evidence="forward-called-at"):
        return Evidence(run_python(HOOKS, kind, sim=1), HOOKS).of("fails", evidence)

    assert of("past") == [("past", "Scale")]
    assert of("kept") == [("kept", "Scale")]
    assert of("unhooked") == [] and of("called") == []
    assert of("leaves", "hook-leaves-argument-at") == [("leaves", "y")]
    assert of("called", "hook-leaves-argument-at") == []


ON_LISTS = PROLOGUE + """
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x * self.weight  # @fails


class Stack(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block()])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def bring(module, args):
    return tuple(one.cuda() for one in args)


import sys
model = Stack().cuda()
if sys.argv[1] == "hooked":
    model.blocks.register_forward_pre_hook(bring)  # @registered
attempt(model, torch.ones(3))
"""


def test_a_hook_on_a_list_of_modules_is_told_since_nobody_calls_a_list(run_python):
    hooked, bare = (Evidence(run_python(ON_LISTS, kind, sim=1), ON_LISTS) for kind in ("hooked", "bare"))
    assert hooked.of("fails", "hook-on-list-at") == [("registered", "ModuleList")]
    assert bare.of("fails", "hook-on-list-at") == []


HANDED_OVER = PROLOGUE + """
import numpy


class Log:
    def __init__(self):
        self.values = []

    def put(self, value):
        self.values.append(value)

    def mean(self):
        return numpy.array(self.values).mean()  # @fails


def once(log):
    norm = gpu().norm()
    log.put(norm)  # @handed


def twice(log):
    norm = gpu().norm()
    print(norm.device)
    log.put(norm)


import sys
log = Log()
(once if sys.argv[1] == "once" else twice)(log)
try:
    log.mean()
except TypeError:
    pass
"""


def test_the_only_line_that_uses_what_a_function_computed_is_told(run_python):
    once, twice = (Evidence(run_python(HANDED_OVER, kind, sim=1), HANDED_OVER) for kind in ("once", "twice"))
    assert once.of("fails", "used-once-at") == [("handed", "norm")]
    assert twice.of("fails", "used-once-at") == []


YIELDED = PROLOGUE + """
import contextlib


@contextlib.contextmanager
def seeded(seed):
    yield torch.manual_seed(seed)  # @yields


@contextlib.contextmanager
def named(seed):
    generator = torch.Generator().manual_seed(seed)  # @makes
    try:
        yield generator
    finally:
        pass


@contextlib.contextmanager
def either(flag):
    if flag:
        yield torch.manual_seed(1)
    else:
        yield torch.manual_seed(2)


def by_seed():
    with seeded(3) as generator:
        gpu().uniform_(generator=generator)  # @seeded


def by_name():
    with named(3) as generator:
        gpu().uniform_(generator=generator)  # @named


def by_either():
    with either(True) as generator:
        gpu().uniform_(generator=generator)  # @either


for body in (by_seed, by_name, by_either):
    attempt(body)
"""


def test_a_generator_that_a_with_statement_got_is_told_where_it_is_yielded_or_made(run_python):
    evidence = Evidence(run_python(YIELDED, sim=1), YIELDED)
    assert evidence.of("seeded", "generator-yielded-at") == [("yields", "seeded")]
    assert evidence.of("named", "generator-yielded-at") == [("makes", "named")]
    assert evidence.of("either", "generator-yielded-at") == []


KEEPERS = PROLOGUE + """
import numpy


class Diary:
    def __init__(self):
        self.pages = {"loss": []}

    def note(self, name, value):
        self.pages[name].append(value)

    def means(self):
        return [numpy.mean(values) for values in self.pages.values()]  # @fails


def one(diary):
    diary.note("loss", 1.5)
    loss = gpu().sum()
    loss = loss + loss
    diary.note("loss", loss)  # @keeps


def two(diary):
    diary.note("loss", gpu().sum())
    diary.note("loss", gpu().mean())


import sys
diary = Diary()
dict(one=one, two=two)[sys.argv[1]](diary)
try:
    diary.means()
except TypeError:
    pass
"""


def test_the_only_call_that_gives_a_tensor_to_what_keeps_it_is_told(run_python):
    # The function that is not called is looked at, too: it must not call the method by its name in the first program.
    source = KEEPERS.replace('diary.note("loss", gpu().', 'diary.write("loss", gpu().')
    assert Evidence(run_python(source, "one", sim=1), source).of("fails", "given-to-keep-at") == [("keeps", "note")]
    assert Evidence(run_python(KEEPERS, "two", sim=1), KEEPERS).of("fails", "given-to-keep-at") == []
