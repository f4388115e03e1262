"""What lies between the making of a value and its use: who hands it on, gathers it, prepares it, brings it back, and
in which order; and which of its neighbours were moved."""

from evidence_programs import PROLOGUE, Evidence

HANDED_ON = PROLOGUE + """
class Base:
    def step(self, x):
        loss = self.compute(x)  # @taken over
        return loss / 2  # @halved

    def compute(self, x):
        return x.sum(0)


class Special(Base):
    def compute(self, x):
        loss, extra = self.measure(x)  # @measured
        return loss  # @as it is

    def measure(self, x):
        return x * 2, None  # @innermost

    def colour(self):
        if self.random:
            shade = torch.rand(3)
        else:
            shade = self.stored  # @stored
        return shade  # @shade

    def paint(self, x):
        x + self.colour()  # @paints


def collect(parts):
    kept = []
    for part in parts:
        kept.append(part * 2)  # @puts
    return kept


def collect_two(parts):
    kept = []
    kept.append(parts[0])
    kept.append(parts[1])
    return kept


def run(task, x):
    total = task.step(torch.ones(3))
    x + total  # @adds


def joins(gather, parts):
    kept = gather(parts)
    torch.cat(kept)  # @joins


def joins_two(gather, parts):
    kept = gather(parts)
    torch.cat(kept)  # @both joined


task = Special()
task.random, task.stored = False, torch.ones(3)
attempt(run, task, gpu())
attempt(task.paint, gpu())
attempt(joins, collect, [torch.ones(3), gpu()])
attempt(joins_two, collect_two, [torch.ones(3), gpu()])
"""


def test_a_value_is_followed_through_the_variables_of_functions_that_hand_it_back(run_python):
    evidence = Evidence(run_python(HANDED_ON, sim=1), HANDED_ON)
    assert [mark for mark, _ in evidence.of("adds", "handed-back-at")] == ["halved", "as it is", "innermost"]
    assert evidence.of("adds", "taken-over-at") == [("measured", "loss"), ("taken over", "loss")]


def test_the_line_that_takes_an_attribute_for_a_call_in_the_failing_line_is_told(run_python):
    evidence = Evidence(run_python(HANDED_ON, sim=1), HANDED_ON)
    assert evidence.of("paints", "taken-over-at") == [("stored", "shade")]
    assert evidence.of("paints", "handed-back-at") == [("shade", "self.colour")]


def test_the_only_line_that_fills_a_list_that_is_handed_back_is_told(run_python):
    evidence = Evidence(run_python(HANDED_ON, sim=1), HANDED_ON)
    assert evidence.of("joins", "gathered-at") == [("puts", "kept")]
    assert evidence.of("both joined", "gathered-at") == []


MODULES = PROLOGUE + """
import copy


class Rotary(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("inv", torch.ones(3))

    def forward(self, x):
        inv = self.inv[None]
        return x + inv  # @rotates


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.layers = torch.nn.Linear(3, 3), torch.nn.ModuleList(torch.nn.Linear(3, 3) for _ in range(2))
        self.rotary = Rotary()

    def forward(self, x):
        return self.rotary(x)


def prepare(model):
    model.layers[0] = model.layers[0].to("cuda")
    model.embed = model.embed.to("cuda")  # @embeds
    model(gpu())


class Policy:
    def __init__(self):
        self.target = torch.nn.Linear(3, 3)
        self.targets = {"cuda:0": copy.deepcopy(self.target).to("cuda")}


def improve(policy, x):
    policy.target(x)  # @takes


class Lone:
    def __init__(self):
        self.target = torch.nn.Linear(3, 3)
        self.others = [torch.nn.Linear(3, 3).to("cuda")]


def improve_alone(policy, x):
    policy.target(x)  # @alone


attempt(prepare, Model())
attempt(improve, Policy(), gpu())
attempt(improve_alone, Lone(), gpu())
"""


def test_lines_that_move_modules_by_their_names_are_told_beside_one_that_none_names(run_python):
    evidence = Evidence(run_python(MODULES, sim=1), MODULES)
    assert evidence.of("rotates", "modules-named-at") == [("embeds", "rotary")]
    assert evidence.of("rotates", "modules-moved-at") == [("embeds", "embed")]


def test_a_variable_that_is_a_view_of_a_buffer_has_the_evidence_of_that(run_python):
    evidence = Evidence(run_python(MODULES, sim=1), MODULES)
    assert evidence.of("rotates", "root-name") == [(None, "rotary.inv")]


def test_a_copy_of_the_module_on_the_device_is_told_where_it_goes_by_the_modules_name(run_python):
    evidence = Evidence(run_python(MODULES, sim=1), MODULES)
    assert evidence.of_all("takes", "module-twin-at") == [("takes", "targets")]
    assert evidence.of_all("alone", "module-twin-at") == []


FLOWS = PROLOGUE + """
def corners(size, centre):
    signs = torch.ones(3)
    return signs + centre  # @host


def boxes(sizes, heading, centre):
    heading = heading.cpu()
    sizes = sizes.cpu()
    return corners(sizes, centre)  # @hands on


def boxes_once(sizes, centre):
    sizes = sizes.cpu()
    return corners_too(sizes, centre)


def corners_too(size, centre):
    signs = torch.ones(3)
    return signs + centre  # @once


def draw(n):
    return torch.full((n,), 0.5)  # @draws


def blend(x, chosen):
    mask = chosen.view(-1)
    mask * x  # @blends


def apply(x):
    blend(x, draw(3))


class Layer:
    def keep(self, x):
        self.kept = x

    def move(self, device):
        self.kept = self.kept.to(device)

    def use(self, x):
        self.kept + x  # @uses


class Cache:
    def __init__(self, layer, device):
        self.layer, self.device = layer, device

    def prefetch(self):
        self.layer.move(self.device)  # @brings

    def update(self, x):
        self.layer.keep(x * 2)
        self.layer.move("cpu")
        self.layer.use(x)


class Trainer:
    def __init__(self, model):
        self.model = model

    def remember(self):
        self.mean = self.model.weight.detach() * 2

    def fit(self):
        self.remember()  # @too early
        self.model.to("cuda")
        self.use()

    def use(self):
        self.model.weight + self.mean  # @after the move


class State:
    def cast(self, key, value):
        if key == "step":  # @passes
            return value
        return value.to("cuda")

    def resume(self, saved):
        self.kept = {key: self.cast(key, value) for key, value in saved.items()}

    def use(self):
        self.kept["sum"] + self.kept["step"]  # @steps


attempt(boxes, gpu(), gpu(), gpu())
attempt(boxes_once, gpu(), gpu())
attempt(apply, gpu())
attempt(Cache(Layer(), torch.device("cuda")).update, gpu())
attempt(Trainer(torch.nn.Linear(3, 3)).fit)
state = State()
state.resume({"sum": torch.ones(3), "step": torch.ones(3)})
attempt(state.use)
"""


def test_what_is_handed_on_among_lines_that_bring_things_to_the_host_is_told(run_python):
    evidence = Evidence(run_python(FLOWS, sim=1), FLOWS)
    assert evidence.of_all("host", "among-host-work-at") == [("hands on", "2")]
    assert evidence.of_all("once", "among-host-work-at") == []


def test_a_maker_that_knows_of_no_device_is_told_with_all_that_its_value_came_through(run_python):
    evidence = Evidence(run_python(FLOWS, sim=1), FLOWS)
    assert evidence.of("blends", "made-unaware-at") == [("draws", "draw")]
    assert evidence.of("uses", "made-unaware-at") == []


def test_the_line_that_brings_back_what_an_object_sends_away_is_told(run_python):
    evidence = Evidence(run_python(FLOWS, sim=1), FLOWS)
    assert evidence.of("uses", "brought-back-at") == [("brings", "move")]


def test_a_call_above_the_move_of_what_the_called_function_computes_with_is_told(run_python):
    evidence = Evidence(run_python(FLOWS, sim=1), FLOWS)
    assert evidence.of("after the move", "called-before-move-at") == [("too early", "remember")]


def test_the_condition_under_which_a_mover_hands_a_value_back_as_it_is_is_told(run_python):
    evidence = Evidence(run_python(FLOWS, sim=1), FLOWS)
    assert [mark for mark, _ in evidence.of("steps", "put-as-it-is-at")] == ["passes"]


REPLICAS = """
import torch

model = torch.nn.Linear(3, 3).to("cuda:1")
model = torch.nn.DataParallel(model)
model(torch.ones(4, 3, device="cuda:1"))
"""


def test_the_line_that_makes_replicas_is_told(run_python):
    (finding,) = run_python(REPLICAS, sim=2).raised()
    told = [e for operand in finding["operands"] for e in operand.get("evidence", []) if e["kind"] == "replicas-made-at"]
    assert [e["line"] for e in told] == [5]
    assert finding["rule"] == "replicas_elsewhere"
