"""The lines that gave an odd operand's variable or attribute its value, and what holds it."""

from evidence_programs import PROLOGUE, Evidence

BOUND = PROLOGUE + """
TABLE = torch.ones(3)  # @set global
SHARED = torch.ones(3)
LATER = None


def use(x):
    gpu() + x  # @argument


def straight():
    a = torch.zeros(3)
    a = torch.ones(3)  # @set straight
    gpu() + a  # @straight


def branches(flag):
    if flag:
        b = torch.ones(3)  # @taken branch
    else:
        b = torch.zeros(3)
    gpu() + b  # @branch


def same(x):
    return x


def unknown_branch(flag, source):
    if flag:
        c = same(source.pop())
    else:
        c = same(source.pop(0))
    gpu() + c  # @unknown branch


def loop():
    d = gpu()
    for _ in range(3):
        e = gpu() + d  # @loop
        d = e.cpu()  # @set loop


def loop_target():
    for item in [torch.ones(3)]:  # @set target
        gpu() + item  # @target


def closure():
    captured = torch.ones(3)  # @set closure
    attempt(lambda: gpu() + captured)  # @closure


def rebound_by_inner():
    shared = torch.zeros(3)

    def rebind(value):
        nonlocal shared
        shared = value

    rebind(torch.ones(3))
    gpu() + shared  # @rebound


def handed_on():
    batch = torch.ones(3)  # @set argument
    attempt(use, batch)


def after_with():
    with torch.no_grad():
        w = torch.ones(3)  # @set with
    gpu() + w  # @with


def caught(source):
    try:
        t = same(source[0])
        [][1]
    except IndexError:
        t = same(source.pop())
    gpu() + t  # @caught


def entry():
    items = [1, torch.ones(3)]  # @set entry
    gpu() + items[1]  # @entry


def view():
    acts = torch.ones(3)  # @set view
    gpu() + acts.unsqueeze(-1).squeeze(-1)  # @view


def temporary():
    acts = torch.ones(3)  # @set temporary
    acts2 = torch.ones(3)
    gpu() + (acts * 2 + 1)  # @temporary


def from_nothing():
    other = torch.ones(3)
    gpu() + torch.zeros(3)  # @nothing


def generator():
    seeded = torch.Generator()  # @set generator
    torch.randn(3, generator=seeded, device="cuda")  # @generator


def set_global():
    global SHARED
    SHARED = torch.zeros(3)


def globals_():
    attempt(lambda: gpu() + TABLE)  # @global
    set_global()
    attempt(lambda: gpu() + SHARED)  # @shared global


attempt(straight)
attempt(branches, True)
attempt(unknown_branch, True, [torch.ones(3)])
attempt(loop)
attempt(loop_target)
closure()
attempt(rebound_by_inner)
handed_on()
attempt(after_with)
attempt(caught, [torch.ones(3)])
attempt(entry)
attempt(view)
attempt(temporary)
attempt(from_nothing)
attempt(generator)
globals_()
"""


def test_the_assignment_that_gave_the_variable_its_value_is_told(run_python):
    evidence = Evidence(run_python(BOUND, sim=1), BOUND)
    expected = {
        "straight": [("set straight", "a")],
        "branch": [("taken branch", "b")],
        "unknown branch": [],
        "loop": [("set loop", "d")],
        "target": [("set target", "item")],
        "closure": [("set closure", "captured")],
        "rebound": [],
        "argument": [("set argument", "batch")],
        "with": [("set with", "w")],
        "caught": [],
        "entry": [("set entry", "items")],
        "view": [("set view", "acts")],
        "temporary": [("set temporary", "acts")],
        "nothing": [],
        "generator": [("set generator", "seeded")],
        "global": [("set global", "TABLE")],
    }
    assert {mark: evidence.of(mark, "bound-at") for mark in expected} == expected
    # Two assignments could have made it, and what made the value tells which.
    [(mark, text)] = evidence.of("shared global", "bound-at")
    assert text == "SHARED" and "SHARED = torch.zeros(3)" in mark


HELD = PROLOGUE + """
class Schedule:
    def __init__(self):
        self.sigmas = torch.ones(3)  # @set sigmas


class Holder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = None
        self.mask = torch.ones(3)  # @set mask
        self.sched = Schedule()  # @set sched
        self.tables = {"x": torch.ones(3)}  # @set tables
        self.register_buffer("ok", torch.ones(3))
        self.twice = torch.ones(3)
        self.history = torch.ones(3)

    def fill(self):
        self.cache = torch.ones(3)  # @set cache

    def again(self, value):
        self.twice = value

    def once_more(self):
        self.history = torch.zeros(3)  # @set history

    def use_mask(self, x):
        return x + self.mask  # @mask

    def use_sigmas(self, x):
        return x + self.sched.sigmas  # @sigmas

    def use_table(self, x):
        return x + self.tables["x"]  # @table

    def use_cache(self, x):
        return x + self.cache  # @cache

    def use_twice(self, x):
        return x + self.twice  # @twice

    def use_history(self, x):
        return x + self.history  # @history

    def use_buffer(self, x):
        return x + self.ok  # @buffer

    def use_view(self, x):
        return x + self.mask.view(3, 1).view(3)  # @viewed mask

    def use_late(self, x):
        return x + self.late  # @late


class Other:
    def __init__(self):
        self.late = 0.5 * torch.ones(3)


def by_name(holder):
    setattr(holder, "named", torch.ones(3))  # @set by name


holder = Holder()
holder.fill()
holder.again(holder.twice.clone())
holder.once_more()
holder.late = torch.ones(3)  # @set late
by_name(holder)
for use in [holder.use_mask, holder.use_sigmas, holder.use_table, holder.use_cache, holder.use_twice,
            holder.use_history, holder.use_buffer, holder.use_view, holder.use_late]:
    attempt(use, gpu())
attempt(lambda: gpu() + holder.named)  # @named
"""


def test_the_line_that_stored_the_attribute_is_told(run_python):
    evidence = Evidence(run_python(HELD, sim=1), HELD)
    expected = {
        "mask": [("set mask", "Holder.mask")],
        "sigmas": [("set sigmas", "Schedule.sigmas"), ("set sched", "Holder.sched")],
        "table": [("set tables", "Holder.tables")],
        "cache": [("set cache", "Holder.cache")],
        "twice": [],
        "history": [("set history", "Holder.history")],
        "buffer": [],
        "viewed mask": [("set mask", "Holder.mask")],
        "late": [("set late", "Holder.late")],
        "named": [("set by name", "Holder.named")],
    }
    assert {mark: evidence.of(mark, "attribute-set-at") for mark in expected} == expected


def test_modules_and_other_objects_that_hold_the_operand_are_told_apart(run_python):
    evidence = Evidence(run_python(HELD, sim=1), HELD)
    expected = {"mask": "Holder.mask", "table": "Holder.tables['x']", "late": "Holder.late", "viewed mask": "Holder.mask"}
    for mark, text in expected.items():
        assert evidence.of(mark, "held-by-module") == [(None, text)], mark
        assert evidence.of(mark, "held-by-object") == [], mark
    assert evidence.of("sigmas", "held-by-object") == [(None, "Schedule.sigmas")]
    assert evidence.of("sigmas", "held-by-module") == []
    assert evidence.of("buffer", "held-by-module") == []
