"""Where something comes from that the odd operand's own history does not show: a device that was handed on, the entries of
a container, a copied function, a trace, a module that another object has, too."""

from evidence_programs import PROLOGUE, Evidence

ENTRIES = PROLOGUE + """
import collections


class Frames:
    def __init__(self):
        self.kept = collections.deque(maxlen=3)
        self.several = []
        self.table = {}

    def begin(self, frame):
        self.kept.append(frame)  # @begin

    def go_on(self, frame):
        self.kept.append(frame.to("cuda"))  # @go on

    def fill(self, frame, named):
        self.several.append(frame)
        self.several.insert(0, frame)
        self.table["own"] = named  # @own key
        self.table["other"] = gpu()

    def stack(self):
        return torch.stack(tuple(self.kept))  # @deque

    def add(self):
        return gpu() + self.several[0]  # @ambiguous

    def look_up(self):
        return gpu() + self.table["own"]  # @key


frames = Frames()
frames.begin(torch.ones(3))
frames.begin(torch.ones(3))
frames.go_on(torch.ones(3))
frames.fill(torch.ones(3), torch.ones(3))
attempt(frames.stack)
attempt(frames.add)
attempt(frames.look_up)
"""


def test_the_line_that_puts_an_entry_into_its_container_is_told(run_python):
    result = run_python(ENTRIES, sim=1)
    evidence = Evidence(result, ENTRIES)
    assert evidence.of("key", "entry-put-at") == [("own key", "self.table")]
    assert evidence.of("ambiguous", "entry-put-at") == []
    [finding] = [f for f in result.raised() if f["op"] == "aten::stack"]
    put = [[evidence.mark_of(e) for e in operand["evidence"] if e["kind"] == "entry-put-at"] for operand in finding["operands"]]
    assert put == [["begin"], ["begin"], ["go on"]]


DEVICES = PROLOGUE + """
class Park:
    def __init__(self):
        self.home = None

    def leave(self, tensor):
        self.home = tensor.device  # @remembered
        return tensor

    def fetch(self):
        return torch.ones(3, device=self.home)


class Memory:
    def __init__(self, size, name="memory", device="cpu"):
        self.name, self.device = name, device  # @kept
        self.states = torch.zeros(size)

    def sample(self):
        return self.states[[1, 2, 3]].to(self.device)


def mask_of(lengths, count):
    return torch.arange(
        count, device=lengths.device)


def masked(values, lengths):
    mask = mask_of(lengths, 3)  # @mask call
    return values + mask  # @argument


class Twice:
    def __init__(self, device):
        self.device = device
        self.device = torch.device(device)

    def make(self):
        return torch.ones(3, device=self.device)


def attribute():
    park = Park()
    park.leave(torch.ones(3))  # @parked
    gpu() + park.fetch()  # @attribute


def constructor():
    memory = Memory(4, "cuda")  # @constructed
    gpu() + memory.sample()  # @constructor


def arguments():
    masked(gpu(), torch.tensor([2, 3]))  # @masked call


def stored_twice():
    gpu() + Twice("cpu").make()  # @twice


def literal():
    gpu() + torch.ones(3, device="cpu")  # @literal


def called_twice(device):
    return torch.ones(3, device=device)


def of_two_calls():
    called_twice("cuda")
    gpu() + called_twice("cpu")  # @two calls


class Pool:
    def __init__(self, device):
        self.device = device  # @pooled

    def make(self):
        return torch.ones(3, device=self.device)


def of_two_constructors():
    pools = Pool("cuda"), Pool("cpu")
    gpu() + pools[1].make()  # @two constructors


for body in (attribute, constructor, arguments, stored_twice, literal, of_two_calls, of_two_constructors):
    attempt(body)
"""


def test_a_device_is_followed_through_attributes_and_arguments(run_python):
    evidence = Evidence(run_python(DEVICES, sim=1), DEVICES)
    assert evidence.of("attribute", "device-from") == [("remembered", "self.home")]
    assert evidence.of("constructor", "device-from") == [("kept", "self.device"), ("constructed", 'device="cpu"')]
    assert evidence.of("argument", "device-from") == [("mask call", "lengths"), ("masked call", "lengths")]


def test_of_several_calls_the_one_that_was_made_gave_the_device(run_python):
    evidence = Evidence(run_python(DEVICES, sim=1), DEVICES)
    assert evidence.of("two calls", "device-from") == [("two calls", "device")]


def test_a_device_of_several_sources_or_of_none_is_not_followed(run_python):
    evidence = Evidence(run_python(DEVICES, sim=1), DEVICES)
    for mark in ("twice", "literal"):
        assert evidence.of(mark, "device-from") == [], mark
    # Which of the two made the object is not known any more.
    assert evidence.of("two constructors", "device-from") == [("pooled", "self.device")]


MODULES = PROLOGUE + """
import copy


class Gated(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.strength = torch.nn.Linear(3, 3)
        self.gate = lambda x: x @ self.strength.weight  # @gate

    def forward(self, x):
        return self.gate(x)


class Policy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = torch.nn.Linear(3, 3)

    def forward(self, x):
        return x + self.encoder.weight  # @policy


class Wrapper(torch.nn.Module):
    def __init__(self, policy):
        super().__init__()
        self.encoder = policy.encoder  # @shared


def traced(x, width):
    return x + torch.ones(width, device=x.device)


def copies():
    first = Gated().to("cuda:0")
    second = copy.deepcopy(first).to("cuda:1")
    second(torch.ones(1, 3, device="cuda:1"))


def shares():
    policy = Policy().to("cuda")  # @made policy
    policy(gpu())
    Wrapper(policy).to("cpu")
    policy(gpu())


def traces():
    call = torch.jit.trace(traced, (torch.ones(3), torch.tensor(3)), check_trace=False)  # @trace
    call(gpu(), torch.tensor(3))  # @call


attempt(copies)
attempt(shares)
attempt(traces)
"""


def test_functions_of_copies_shared_modules_and_traces_lead_to_the_line_that_made_them(run_python):
    result = run_python(MODULES, sim=2)
    evidence = Evidence(result, MODULES)
    [gate] = [f for f in result.raised() if f["where"]["function"].endswith("<lambda>") and "gate" in f["where"]["source"]]
    told = [(evidence.mark_of(e), e["text"]) for o in gate["operands"] for e in o.get("evidence", []) if e["kind"] == "closure-of-copy"]
    assert told == [("gate", "Gated.gate")]
    assert evidence.of("policy", "module-shared-at") == [("shared", "encoder")]
    assert evidence.of("policy", "module-bound-at") == [("made policy", "policy")]
    assert evidence.of("call", "traced-at") == [("trace", None)]


COMPUTED = PROLOGUE + """
class Graph:
    def __init__(self, edges):
        self.edges = edges  # @edges
        self.features = {}

    def to(self, device):
        moved = Graph(self.edges)  # @anew
        moved.features = {name: value.to(device) for name, value in self.features.items()}  # @features
        return moved


def degrees():
    graph = Graph(torch.tensor([1, 2, 2]))
    graph.features["x"] = torch.ones(3)
    graph = graph.to("cuda")
    norm = graph.edges.bincount()[:3].float()
    graph.features["x"] + norm  # @computed


def from_one_of_two():
    pair = [torch.ones(3) for _ in range(2)]
    value = pair[0] * 2
    gpu() + value  # @same history


attempt(degrees)
attempt(from_one_of_two)
"""


def test_what_an_operand_was_computed_from_leads_to_what_came_with_that(run_python):
    evidence = Evidence(run_python(COMPUTED, sim=1), COMPUTED)
    assert evidence.of("computed", "computed-from") == [("edges", "graph.edges")]
    assert evidence.of("computed", "sibling-moved") == [("features", "['x']")]
    assert evidence.of("computed", "rebuilt-at") == [("anew", "Graph")]


def test_of_two_tensors_with_one_history_none_is_told_to_be_the_source(run_python):
    evidence = Evidence(run_python(COMPUTED, sim=1), COMPUTED)
    assert evidence.of("same history", "computed-from") == []
