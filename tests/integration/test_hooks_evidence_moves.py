"""What is found out about moves that left a value where it was: a `.to()` to its own device, and the tensors that a
module's move has replaced."""

from evidence_programs import PROLOGUE, Evidence
from hooks_programs import found_at

STAYS = PROLOGUE + """
def sent(home):
    table = torch.arange(3.0).to(home)  # @move of sent
    table + gpu()  # @sent


def viewed(home):
    table = torch.ones(2, 3)
    table.to(home)  # @move of view
    table[0] + gpu()  # @view


def converted():
    table = torch.ones(3).to(torch.float32)
    table.float() + gpu()  # @dtype


def moved_since():
    table = torch.ones(3).to("cpu").cuda().cpu()
    table + gpu()  # @moved


def module(home):
    net = torch.nn.Linear(3, 3, bias=False).to(home)  # @move of module
    net(gpu())  # @module


for body in (sent, viewed, module):
    attempt(body, "cpu")
attempt(converted)
attempt(moved_since)
"""


def test_the_last_move_that_found_a_value_where_it_should_go_is_told(run_python):
    evidence = Evidence(run_python(STAYS, sim=1), STAYS)
    assert evidence.of("sent", "stayed-at") == [("move of sent", None)]
    assert evidence.of("view", "stayed-at") == [("move of view", None)]
    assert evidence.of("module", "stayed-at") == [("move of module", None)]
    for mark in ("dtype", "moved"):
        assert evidence.of(mark, "stayed-at") == [], mark


REUSED = PROLOGUE + """
def meet(x):
    x + gpu()  # @meet


for _ in range(300):
    gone = torch.ones(3)
    gone.to("cpu")
    del gone
    x = torch.ones(3)
    x.cuda()
    attempt(meet, x)
"""


def test_what_was_done_with_a_tensor_that_is_gone_is_not_told_of_another_at_its_place(run_python):
    result = run_python(REUSED, sim=1)
    evidence = Evidence(result, REUSED)
    assert evidence.of("meet", "stayed-at") == []
    assert len(evidence.of("meet", "copied-away")) == 1
    assert found_at(result, REUSED, "meet")["count"] == 300


KEPT = PROLOGUE + """
class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("factor", torch.ones(3))
        self.first_factor = self.factor

    def reset(self):
        self.factor = self.first_factor  # @put back

    def forward(self, x):
        return x * self.factor  # @reset


class Shift(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("amount", torch.ones(3))

    def forward(self, x):
        return x + self.amount  # @shift


class Keeper:
    def __init__(self, model):
        self.states = {"before": [model.amount]}  # @kept


def reset():
    scale = Scale().cuda()
    scale.reset()
    scale(gpu())


def of_object():
    model = Shift()
    keeper = Keeper(model)
    model.cuda()
    model.amount = keeper.states["before"][0]
    model(gpu())


class Offset(Shift):
    def forward(self, x):
        return x - self.amount  # @offset


def of_variable():
    model = Offset()
    buffers = dict(model.named_buffers())  # @taken
    model.cuda()
    torch.func.functional_call(model, buffers, (gpu(),))


class Late(Shift):
    def forward(self, x):
        return x / self.amount  # @late


def never_moved():
    model = Late()
    buffers = dict(model.named_buffers())
    torch.func.functional_call(model, buffers, (gpu(),))


for body in (reset, of_object, of_variable, never_moved):
    attempt(body)
"""


def test_who_keeps_a_buffer_from_before_its_module_moved_is_told(run_python):
    evidence = Evidence(run_python(KEPT, sim=1), KEPT)
    assert evidence.of("reset", "kept-from-before-move") == [("put back", "Scale.first_factor")]
    assert evidence.of("shift", "kept-from-before-move") == [("kept", "Keeper.states['before'][0]")]
    assert evidence.of("offset", "kept-from-before-move") == [("taken", "buffers['amount']")]
    assert evidence.of("late", "kept-from-before-move") == []
    for mark in ("reset", "shift", "offset"):
        assert evidence.of(mark, "copied-away") == [], mark
        assert [text for _, text in evidence.of(mark, "moved-with-module")] == ["cuda:0"], mark
