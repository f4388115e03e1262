"""What an odd operand came together with, and which line moved that and passed the operand over."""

from evidence_programs import PROLOGUE, Evidence

BATCHES = PROLOGUE + """
from collections import namedtuple

Pair = namedtuple("Pair", ["x", "y"])


class Fields:
    def __init__(self):
        self.x, self.y = torch.ones(3), torch.ones(3)


def moved_from_dict():
    batch = {"x": torch.ones(3), "targets": [{"y": torch.ones(3)}]}
    x = batch["x"].to("cuda")  # @move dict
    x + batch["targets"][0]["y"]  # @dict


def moved_in_place():
    fields = Fields()
    fields.x = fields.x.to("cuda")  # @move field
    fields.x + fields.y  # @field


def moved_tuple(pair):
    return pair._replace(x=pair.x.to("cuda"))  # @move tuple


def from_tuple():
    pair = moved_tuple(Pair(torch.ones(3), torch.ones(3)))
    pair.x + pair.y  # @tuple


def step(ids, mask, history):
    ids + mask + history["codes"]  # @argument


def move_all(batch):
    return {k: v.to("cuda") if torch.is_tensor(v) else v for k, v in batch.items()}  # @move arguments


def to_the_cpu():
    batch = {"x": gpu(), "y": gpu()}
    x = batch["x"].cpu()
    x + batch["y"]  # @other way


def one_argument(x, table):
    x + table  # @one argument


def many():
    kept = [torch.ones(3) for _ in range(100)]
    x = kept[3].to("cuda")
    x + kept[50]  # @many


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.ones(3))
        self.register_buffer("shift", torch.ones(3))

    def forward(self, x):
        return x * self.gain + self.shift  # @module


def by_hand():
    scaled = Scaled()
    scaled.gain.data = scaled.gain.data.to("cuda")  # @move weight
    scaled(gpu())


with torch.no_grad():
    attempt(moved_from_dict)
    attempt(moved_in_place)
    attempt(from_tuple)
    attempt(lambda: step(**move_all({"ids": torch.ones(3), "mask": torch.ones(3), "history": {"codes": torch.ones(3)}})))
    attempt(to_the_cpu)
    attempt(one_argument, torch.ones(3).to("cuda"), torch.ones(3))
    attempt(many)
    attempt(by_hand)
"""


def test_the_line_that_moved_the_rest_of_a_batch_is_told(run_python):
    evidence = Evidence(run_python(BATCHES, sim=1), BATCHES)
    assert evidence.of("dict", "sibling-moved") == [("move dict", "['x']")]
    assert evidence.of("field", "sibling-moved") == [("move field", ".x")]
    assert evidence.of("tuple", "sibling-moved") == [("move tuple", ".x")]  # a named one
    assert evidence.of("argument", "sibling-moved") == [("move arguments", "ids")]
    assert evidence.of("module", "sibling-moved") == [("move weight", ".gain")]


def test_what_has_nothing_to_do_with_the_operand_is_no_sibling(run_python):
    evidence = Evidence(run_python(BATCHES, sim=1), BATCHES)
    assert evidence.of("one argument", "sibling-moved") == []
    assert evidence.of("many", "sibling-moved") == []
    assert evidence.of("other way", "sibling-moved") == []


ALIASES = PROLOGUE + """
class Rotary(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("frequencies", torch.ones(3))
        self.original = self.frequencies  # @set original

    def forward(self, x):
        chosen = self.original
        return x * chosen  # @alias


def prompt():
    x = torch.ones(3)
    kept = x  # @set kept
    x = x.to("cuda")
    for _ in range(2):
        kept = torch.add(kept, x)  # @kept


attempt(Rotary().to("cuda"), gpu())
attempt(prompt)
"""


def test_a_variable_that_stands_for_an_attribute_leads_to_where_that_is_stored(run_python):
    evidence = Evidence(run_python(ALIASES, sim=1), ALIASES)
    assert evidence.of("alias", "held-by-module") == [(None, "Rotary.original")]
    assert evidence.of("alias", "attribute-set-at") == [("set original", "Rotary.original")]


def test_a_statement_that_fails_is_not_where_its_target_got_its_value(run_python):
    evidence = Evidence(run_python(ALIASES, sim=1), ALIASES)
    assert evidence.of("kept", "bound-at") == [("set kept", "kept")]


OUTER = PROLOGUE + """
class Coder(torch.nn.Module):
    def __init__(self, palette=torch.nn.Linear(3, 3, bias=False)):  # @set default
        super().__init__()
        self.inner = palette

    def decode(self, x):
        return torch.mm(x, self.inner.weight)  # @decode

    def encode(self, x):
        return torch.mm(x, self.inner.weight)  # @encode

    def forward(self, x):
        return torch.mm(x, self.inner.weight)  # @forward


def bring(module, inputs):
    module.to("cuda")


def count(module, inputs):
    module.calls = 1


def forget(module, inputs):
    module.to("cpu")


coder = Coder()
coder.register_forward_pre_hook(count)
attempt(coder.decode, gpu(1, 3))
coder.register_forward_pre_hook(bring)  # @set hook
attempt(coder.encode, gpu(1, 3))
coder.register_forward_pre_hook(forget)
attempt(coder, gpu(1, 3))
"""


def test_a_hook_of_a_module_around_the_owner_counts_where_it_moves_something_and_did_not_run(run_python):
    evidence = Evidence(run_python(OUTER, sim=1), OUTER)
    assert evidence.of("decode", "owner-forward-hook") == []
    assert evidence.of("encode", "owner-forward-hook") == [("set hook", "bring")]
    assert evidence.of("forward", "owner-forward-hook") == []


def test_a_module_that_is_a_default_argument_is_told(run_python):
    evidence = Evidence(run_python(OUTER, sim=1), OUTER)
    assert evidence.of("decode", "default-argument") == [("set default", "Coder.__init__(palette)")]
