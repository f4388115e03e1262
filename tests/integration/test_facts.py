"""What is recorded around a finding: objects, who holds whom, variables, copies and texts, and that recording them
disturbs nothing."""

import json
import subprocess

import pytest
from hooks_programs import HELPERS

PROLOGUE = """\
import functools

import torch
from torch import nn


""" + HELPERS

GRAPH = PROLOGUE + """

DEVICE = torch.device("cuda:0")
CONFIG = {"device": "cuda:1", "api_token": "abc123", 7: "seven", (1, 2): "pair"}


def with_default(x, shift=torch.ones(3), *, scale=2):
    return x + shift


class Base(nn.Module):
    def prepare(self):
        return self


class Net(Base):
    table = "cpu"

    def __init__(self, device):
        super().__init__()
        self.device = device
        self.proj = nn.Linear(3, 3)
        self.register_buffer("steps", torch.zeros(1))
        self.mask = torch.ones(3)
        self.nested = {"levels": [1, {"deep": torch.ones(3)}]}
        self.apply_shift = functools.partial(with_default, scale=3)

    def forward(self, x):
        return self.proj(x) + self.mask


def note(module, args):
    return None


def program():
    net = Net(torch.device("cuda", 1)).to("cuda")
    net.register_forward_pre_hook(note)
    host = torch.ones(3)
    moved = host.to("cuda")
    bound = net.prepare

    def closing(x):
        return x + host

    attempt(lambda: net(gpu()))
    attempt(lambda: closing(gpu()))
    attempt(lambda: with_default(gpu()))
    attempt(lambda: gpu() + net.nested["levels"][1]["deep"])
    return moved, bound


program()
"""


class Meeting:
    """One entry of `devsan view --facts`, asked by names."""

    def __init__(self, json):
        self.json = json
        self.objects = json["objects"]

    def held(self, holder, kind, name=None, index=None):
        """The one object that another holds so."""
        found = [link["to"] for link in self.json["links"]
                 if (link["from"], link["kind"], link.get("name"), link.get("index")) == (holder["id"], kind, name, index)]
        assert len(found) == 1, f"{len(found)} {kind} {name} {index} of {holder}"
        return self.objects[found[0]]

    def variable(self, name, frame=None, kind=None):
        found = [one for one in self.json["variables"]
                 if one["name"] == name and frame in (None, one["frame"]) and kind in (None, one["kind"])]
        assert found, f"no variable {name}"
        return self.objects[found[0]["object"]]

    def operand(self, index):
        return self.objects[self.json["operands"][index]["object"]]


def facts_of(result):
    done = subprocess.run([result.devsan, "view", result.out, "--facts"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def raised(facts):
    return [Meeting(one) for one in facts["meetings"] if one["raised"]]


@pytest.fixture(scope="module")
def graph(tmp_path_factory, devsan, python):
    """The facts of GRAPH, which ran once."""
    from harness import Runner
    run = Runner(devsan, python, tmp_path_factory.mktemp("graph"), start=True)
    source = run.program(GRAPH)
    result = run(source, sim=2)
    assert result.status == 0, result.stderr
    return source, result, facts_of(result)


def line_of(text):
    return GRAPH.split("\n").index(text) + 1


def test_a_plain_attribute_is_held_by_its_module_beside_parameters_buffers_and_children(graph):
    source, result, facts = graph
    meeting = raised(facts)[0]
    net = meeting.variable("self", frame=0)
    assert net["kind"] == "module" and net["type"] == "__main__.Net"
    mask = meeting.held(net, "attribute", "mask")
    assert mask["operand"] == 1 and mask["device"] == "cpu" and mask["dimensions"] == 1
    assert mask == meeting.operand(1)
    assert meeting.held(net, "buffer", "steps")["device"] == "cuda:0"
    weight = meeting.held(meeting.held(net, "child", "proj"), "parameter", "weight")
    assert (weight["kind"], weight["device"], weight["requires_grad"], weight["leaf"]) == (
        "parameter", "cuda:0", True, True)
    assert meeting.operand(0)["leaf"] is False


def test_a_meeting_is_named_by_its_finding_and_has_its_frames_and_histories(graph):
    source, result, facts = graph
    assert [one.json["finding"] for one in raised(facts)] == [finding["id"] for finding in result.raised()]
    meeting = raised(facts)[0].json
    assert meeting["frames"][0]["function"] == "Net.forward" and not meeting["frames"][0]["torch"]
    history = meeting["operands"][1]["lineage"]
    assert (history[-1]["how"], history[-1]["op"]) == ("created", "aten::ones")
    assert history[-1]["user"]["line"] == line_of("        self.mask = torch.ones(3)")
    assert history[-1]["calls"][0]["function"] == "program"


def test_classes_and_functions_have_the_place_of_their_code(graph):
    source, result, facts = graph
    meeting = raised(facts)[0]
    net = meeting.variable("self", frame=0)
    place = {"file": str(source), "line": line_of("    def forward(self, x):"), "function": "Net.forward"}
    assert net["code"] == place
    net_class = meeting.held(net, "class")
    assert net_class["kind"] == "class" and net_class["type"] == "__main__.Net" and net_class["code"] == place
    base = meeting.held(net_class, "base", index=1)
    assert base["type"] == "__main__.Base" and base["code"]["function"] == "Base.prepare"
    assert meeting.held(net_class, "attribute", "table")["text"] == "cpu"
    hook = meeting.held(net, "forward_pre_hook", index=0)
    assert hook["kind"] == "function" and hook["code"]["function"] == "note"
    shift = meeting.held(net, "attribute", "apply_shift")
    assert shift["kind"] == "partial"
    assert meeting.held(shift, "attribute", "func")["code"]["function"] == "with_default"
    number = meeting.held(meeting.held(shift, "attribute", "keywords"), "keyed_entry", "scale")
    assert (number["kind"], number["value"]) == ("number", 3)


def test_devices_and_settings_are_told_and_secrets_are_not(graph):
    source, result, facts = graph
    meeting = raised(facts)[0]
    device = meeting.held(meeting.variable("self", frame=0), "attribute", "device")
    assert (device["kind"], device["text"], device["device"]) == ("device", "cuda:1", "cuda:1")
    assert meeting.variable("DEVICE", kind="global")["text"] == "cuda:0"
    config = meeting.variable("CONFIG", kind="global")
    assert config["entries"] == 4
    assert meeting.held(config, "keyed_entry", "device")["text"] == "cuda:1"
    assert meeting.held(config, "numbered_entry", index=7)["text"] == "seven"
    assert meeting.held(config, "entry_of_key", index=3)["text"] == "pair"
    assert meeting.held(config, "key_of_entry", index=3)["entries"] == 2
    assert "text" not in meeting.held(config, "keyed_entry", "api_token")


def test_variables_are_of_their_frames_and_cells_are_told_apart(graph):
    source, result, facts = graph
    meeting = raised(facts)[1]
    functions = [frame["function"] for frame in meeting.json["frames"]]
    assert functions[0] == "program.<locals>.closing"
    host = meeting.variable("host", frame=0, kind="cell")
    assert host["operand"] == 1
    frame = functions.index("program")
    assert meeting.variable("host", frame=frame, kind="cell") == host
    assert meeting.variable("moved", frame=frame, kind="local")["device"] == "cuda:0"
    closing = meeting.variable("closing", frame=frame)
    assert meeting.held(closing, "closure", "host") == host
    bound = meeting.variable("bound", frame=frame, kind="local")
    assert bound["kind"] == "method" and meeting.held(bound, "self") == meeting.variable("net", frame=frame)
    assert meeting.held(bound, "function")["code"]["function"] == "Base.prepare"


def test_a_copy_of_an_operand_is_told_with_its_place(graph):
    source, result, facts = graph
    meeting = raised(facts)[1]
    storage = meeting.json["operands"][1]["storage"]
    copies = [copy for copy in meeting.json["copies"] if copy["storage"] == storage]
    assert [(copy["kind"], copy["device"], copy["user"]["line"]) for copy in copies] == [
        ("moved_away", "cuda:0", line_of('    moved = host.to("cuda")'))]


REUSED = PROLOGUE + """

def meet(x):
    x + gpu()


for _ in range(300):
    gone = torch.ones(3)
    gone.to("cpu")
    del gone
    x = torch.ones(3)
    x.cuda()
    attempt(lambda: meet(x))
"""


def test_what_was_done_with_a_tensor_that_is_gone_is_not_told_of_another_at_its_place(run_python):
    facts = facts_of(run_python(REUSED, sim=1))
    [meeting] = raised(facts)
    assert [copy["kind"] for copy in meeting.json["copies"]] == ["moved_away"]


def test_default_values_are_held_by_their_function(graph):
    source, result, facts = graph
    meeting = raised(facts)[2]
    function = meeting.variable("with_default", kind="global")
    assert meeting.held(function, "default", "shift", index=1)["operand"] == 1
    assert meeting.held(function, "keyword_default", "scale")["value"] == 2


def test_an_operand_in_nested_containers_is_reached(graph):
    source, result, facts = graph
    meeting = raised(facts)[3]
    nested = meeting.held(meeting.variable("net"), "attribute", "nested")
    levels = meeting.held(nested, "keyed_entry", "levels")
    assert meeting.held(meeting.held(levels, "entry", index=1), "keyed_entry", "deep")["operand"] == 1


def test_the_texts_of_the_programs_files_are_kept_and_torchs_are_not(graph):
    source, result, facts = graph
    assert facts["sources"] == {str(source): GRAPH}


def test_a_file_that_changes_after_the_run_is_told_as_it_was(run_python):
    program = run_python.program(PROLOGUE + "\n\nattempt(lambda: gpu() + torch.ones(3))\n")
    text = program.read_text()
    result = run_python(program, sim=2)
    program.write_text("changed = True\n")
    assert facts_of(result)["sources"] == {str(program): text}


def test_source_0_keeps_the_texts_out_and_says_which_files_they_were(run_python):
    program = run_python.program(PROLOGUE + "\n\nattempt(lambda: gpu() + torch.ones(3))  # a comment of one's own\n")
    result = run_python(program, sim=2, preload=True, options=["source=0"])
    facts = facts_of(result)
    assert facts["sources"] == {}
    assert facts["files"][str(program)]["size"] == len(program.read_text())
    assert len(raised(facts)) == 1
    trace = b"".join(path.read_bytes() for path in result.out.iterdir())
    assert b"functools" not in trace  # which stands in no line that the finding shows


HOSTILE = PROLOGUE + """
import atexit

ran = []


class Hostile:
    def __init__(self):
        self.value = torch.ones(3)
        self.again = self
        self.cycle = [self]
        self.cycle.append(self.cycle)

    @property
    def prop(self):
        ran.append("property")
        raise ValueError

    def __getattr__(self, name):
        ran.append(name)
        raise ValueError

    def __getattribute__(self, name):
        if name != "value":
            ran.append(name)
        return object.__getattribute__(self, name)

    def __eq__(self, other):
        ran.append("__eq__")
        raise ValueError

    def __hash__(self):
        if armed:
            ran.append("__hash__")
            raise ValueError
        return 1

    def __repr__(self):
        ran.append("__repr__")
        raise ValueError

    __str__ = __repr__
    __len__ = __iter__ = __bool__ = __index__ = __int__ = __repr__


class Text(str):
    __eq__ = __hash__ = None


class Number(int):
    def __index__(self):
        ran.append("__index__")
        raise ValueError


armed = False
hostile = Hostile()
table = {hostile: 1, "members": {hostile}}
odd = [Text("cuda:0"), Number(3), 1 << 100, -1, float("nan"), hostile]
armed = True
ran.clear()
value = hostile.value
host = gpu()
try:
    host + value
except RuntimeError as error:
    print(type(error).__name__)
print(ran)
armed = False
"""


def test_no_code_of_the_program_runs_and_cycles_end(run_python):
    result = run_python(HOSTILE, sim=2)
    assert result.status == 0, result.stderr
    assert result.stdout == "RuntimeError\n[]\n"
    meeting = raised(facts_of(result))[0]
    hostile = meeting.variable("hostile")
    assert meeting.held(hostile, "attribute", "again") == hostile
    cycle = meeting.held(hostile, "attribute", "cycle")
    assert meeting.held(cycle, "entry", index=0) == hostile and meeting.held(cycle, "entry", index=1) == cycle
    odd = meeting.variable("odd")
    values = [meeting.held(odd, "entry", index=k).get("value") for k in range(6)]
    assert values == [None, 3, None, -1, None, None]


LARGE = PROLOGUE + """

class Item:
    def __init__(self, k):
        self.number = k
        self.text = f"item {k}"


def program():
    many = [torch.ones(1) for _ in range(100_000)]
    tree = [[[Item(k) for k in range(60)] for _ in range(60)] for _ in range(60)]
    long_text = "x" * 1000
    far = many[3000]
    del far
    attempt(lambda: gpu() + many[3000])
    return tree, long_text


program()
"""


def test_bounds_are_kept_and_the_way_to_an_operand_is_not_cut_off(run_python):
    result = run_python(LARGE, sim=2)
    assert result.status == 0, result.stderr
    meeting = raised(facts_of(result))[0]
    assert meeting.json["cut"] is True
    assert 1000 < len(meeting.objects) <= 4000
    assert len(meeting.json["links"]) <= 12000 and len(meeting.json["variables"]) <= 700
    many = meeting.variable("many")
    assert (many["entries"], many["cut"]) == (100_000, True)
    assert meeting.held(many, "entry", index=3000)["operand"] == 1
    assert len([link for link in meeting.json["links"] if link["from"] == many["id"]]) == 65
    assert "text" not in meeting.variable("long_text")


BACKWARD = PROLOGUE + """

class Mix(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, table):
        ctx.table = table
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad + ctx.table, None


def program():
    table = torch.ones(3)
    x = gpu().requires_grad_()
    loss = Mix.apply(x, table).sum()
    attempt(loss.backward)


program()
"""


def test_a_backward_on_a_thread_of_autograds_knows_the_variables_of_who_waits(run_python):
    result = run_python(BACKWARD, sim=2)
    assert result.status == 0, result.stderr
    meeting = raised(facts_of(result))[0]
    assert meeting.variable("table")["operand"] == 1


def test_an_environment_is_not_recorded(run_python):
    result = run_python(PROLOGUE + """
import os

saved = dict(os.environ)
attempt(lambda: gpu() + torch.ones(3))
""", sim=2, env={"DEVSAN_TEST_SECRET": "swordfish"})
    meeting = raised(facts_of(result))[0]
    assert meeting.variable("saved")["entries"] > 1
    assert b"swordfish" not in b"".join(path.read_bytes() for path in result.out.iterdir())
