"""What was left where its counterpart is not: attributes whose module has gone, modules in containers, values that were
copied for another call, and names that say where something should be."""

from evidence_programs import PROLOGUE, Evidence

LEFT = PROLOGUE + """
class Window(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.shape = torch.ones(3, device="cuda")
        self.steps = [torch.ones(3, device="cuda") for _ in range(2)]  # @steps kept
        self.late = []


class Voice(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.window = Window()
        self.out = torch.nn.Linear(3, 3, device="cuda")


def aside():
    voice = Voice()
    voice.cpu()  # @left
    torch.ones(3) * voice.window.shape  # @aside


def in_loop():
    voice = Voice()
    voice.to("cpu")  # @left in loop
    window = voice.window
    for step in window.steps:
        torch.ones(3) * step  # @in loop


def put_later():
    voice = Voice()
    voice.window.late.append(torch.ones(3, device="cuda"))
    voice.to("cpu")
    window = voice.window
    for step in window.late:
        torch.ones(3) * step  # @put later


def in_parts():
    voice = Voice()
    voice.add = torch.nn.Linear(3, 3, device="cuda")
    voice.out.cpu()
    torch.ones(3) * voice.window.shape  # @in parts


def never_there():
    voice = Voice()
    voice.out = torch.nn.Linear(3, 3)
    torch.ones(3) * voice.window.shape  # @never there


for body in (aside, in_loop, put_later, in_parts, never_there):
    attempt(body)
"""


def test_the_move_of_a_module_that_leaves_an_attribute_is_told(run_python):
    evidence = Evidence(run_python(LEFT, sim=1), LEFT)
    assert evidence.of_all("aside", "holder-moved-at") == [("left", "cpu")]
    assert evidence.of_all("in loop", "holder-moved-at") == [("left in loop", "cpu")]
    assert evidence.of_all("in loop", "attribute-set-at") == [("steps kept", "Window.steps")]
    assert evidence.of_all("in loop", "held-by-module") == [(None, "Window.steps[0]")]
    for mark in ("put later", "in parts", "never there"):
        assert evidence.of_all(mark, "holder-moved-at") == [], mark
    assert evidence.of_all("put later", "held-by-module") == []


MADE = PROLOGUE + """
class Judge(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.build(size)

    def build(self, size):
        self.weigh = torch.nn.Linear(size, size)


class Strict(Judge):
    def __init__(self):
        super().__init__(3)

    def forward(self, x):
        return self.weigh(x)  # @judge


class Court:
    def __init__(self):
        self.judges = {
            "plain": abs,
            "strict": Strict(),  # @made
        }


def judged():
    for judge in Court().judges.values():
        judge(gpu())


def renewed():
    judge = Strict().cuda()
    judge.build(3)
    judge.weigh(gpu())  # @renewed


for body in (judged, renewed):
    attempt(body)
"""


def test_the_call_that_made_the_outermost_module_is_told(run_python):
    evidence = Evidence(run_python(MADE, sim=1), MADE)
    assert evidence.of_all("judge", "module-made-at") == [("made", "Strict")]
    assert evidence.of_all("renewed", "module-made-at") == []


COPIED = PROLOGUE + """
def meet(x):
    x + gpu()  # @meet


def take(x, shift):
    meet(x - shift)  # @inner


def given(rows):
    rows.cuda()  # @copied
    take(shift=1.0, x=rows)  # @outer


attempt(given, torch.ones(3))
"""


def test_the_copy_of_what_a_value_was_computed_from_is_told_and_the_calls_that_gave_it(run_python):
    evidence = Evidence(run_python(COPIED, sim=1), COPIED)
    assert evidence.of("meet", "source-copied-at") == [("copied", "cuda:0")]
    assert evidence.of("meet", "source-given-at") == [("outer", "rows")]
    assert evidence.of("meet", "given-at") == [("inner", "x - shift")]
    assert evidence.of("meet", "copied-away") == []


TWINS = PROLOGUE + """
import typing


class Pair(typing.NamedTuple):
    table: torch.Tensor
    host_table: torch.Tensor


def of_tuple():
    pair = Pair(gpu(), gpu())
    torch.ones(3) + pair.host_table  # @tuple


def of_variables():
    gpu_rows, host_rows = gpu(), gpu()
    torch.ones(3) + host_rows  # @variables


def of_other_shape():
    pair = Pair(gpu(5), gpu())
    torch.ones(3) + pair.host_table  # @shape


def of_machines():
    host_ids = gpu()
    torch.ones(3) + host_ids  # @machines


for body in (of_tuple, of_variables, of_other_shape, of_machines):
    attempt(body)
"""


def test_a_counterpart_beside_a_name_for_the_host_is_told(run_python):
    evidence = Evidence(run_python(TWINS, sim=1), TWINS)
    assert evidence.of_all("tuple", "device-twin") == [(None, "table")]
    assert evidence.of_all("variables", "device-twin") == [(None, "gpu_rows")]
    for mark in ("shape", "machines"):
        assert evidence.of_all(mark, "device-twin") == [], mark
