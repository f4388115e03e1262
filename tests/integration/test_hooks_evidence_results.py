"""Devices and tensors that come out of a function's result or out of a table, what fills a container by another name, and
hooks that a module has not."""

from evidence_programs import PROLOGUE, Evidence

DEVICES = PROLOGUE + """
class Check:
    def look(self, x):
        where = "cuda" if str(x.device) == "cuda" else "cpu"  # @chosen
        return where, len(x)


class Loss(Check):
    def at_check(self, x):
        where, n = self.look(x)
        return x + torch.ones(n).to(where)  # @unpacked

    def at_itself(self, x):
        where = again()
        return x + torch.ones(3).to(where)  # @itself


def again():
    where = again()
    return where


def plan(names):
    table = {}
    for k, name in enumerate(names):
        table[name] = ["cuda:0", "cpu"][k % 2]  # @put
    return table


def plan_of_two():
    return plan(["first", "second"])


def spread(x):
    placed = []
    chosen = plan_of_two()
    for name, spot in chosen.items():
        placed.append(torch.ones(3, device=spot))
    return torch.stack(placed)  # @spread


def keep(name):
    return "cuda" if name == "kept" else "cpu"  # @keep


def computed(x):
    return x + torch.ones(3, device=keep("given"))  # @computed


loss = Loss()
attempt(loss.at_check, gpu())
again = lambda: "cpu"
attempt(loss.at_itself, gpu())
attempt(spread, gpu())
attempt(computed, gpu())
"""


def test_a_device_is_followed_into_what_hands_it_back(run_python):
    result = run_python(DEVICES, sim=1)
    evidence = Evidence(result, DEVICES)
    told = evidence.of("unpacked", "device-from") + evidence.of("unpacked", "stay-from")
    assert ("chosen", "where") in told
    assert evidence.of("spread", "device-from") == [("put", "table[...]")]
    assert evidence.of("computed", "device-from") == [("keep", "keep")]


def test_a_function_that_is_written_to_call_itself_ends_the_search(run_python):
    result = run_python(DEVICES, sim=1)
    assert result.status == 0, result.stderr
    [finding] = [f for f in result.raised() if "# @itself" in f["where"]["source"]]
    assert "Loss.at_itself" in finding["where"]["function"]


FILLS = PROLOGUE + """
class Sgd:
    def __init__(self):
        self.state = [{"buf": None, "n": 0}]

    def restore(self, saved):
        for slot, old in zip(self.state, saved):
            for key, value in old.items():
                slot[key] = value  # @restored

    def rename(self):
        for slot in self.state:
            slot["other"] = 1

    def step(self, grad):
        for slot in self.state:
            slot["buf"].add_(grad)  # @step


sgd = Sgd()
sgd.restore([{"buf": torch.zeros(3), "n": 1}])
sgd.rename()
attempt(sgd.step, gpu())
"""


def test_a_container_is_filled_by_whatever_name_its_entries_go_by(run_python):
    evidence = Evidence(run_python(FILLS, sim=1), FILLS)
    lines = [mark for mark, _ in evidence.of("step", "came-through-at")]
    assert "restored" in lines


HOOKS = PROLOGUE + """
def bring(module, args):
    return tuple(a.to("cuda") for a in args)


def dispatch(model, often):
    model.to("cuda")
    if often:  # @condition
        for module in model:
            module.register_forward_pre_hook(bring)


net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
dispatch(net, False)
attempt(lambda: net(torch.ones(3)))  # @never
plain = torch.nn.Linear(3, 3).to("cuda")
attempt(lambda: plain(torch.ones(3)))  # @plain
"""


def test_a_condition_that_registered_no_hook_is_told_of_the_weights_its_function_moved(run_python):
    evidence = Evidence(run_python(HOOKS, sim=1), HOOKS)
    assert evidence.of("never", "hook-missing-at") == [("condition", "not registered")]
    assert evidence.of("plain", "hook-missing-at") == []


TABLES = PROLOGUE + """
rules = {
    "embed": "cpu",  # @embed
    "head": "cuda:0",
}
presets = {"train": ["head"], "draw": ["embed", "head"]}  # @presets
parts = {"embed": torch.nn.Linear(3, 3), "head": torch.nn.Linear(3, 3)}


class Store:
    def __init__(self):
        self.cached = {}  # @cached

    def keep(self, name):
        self.cached[name] = torch.ones(3)

    def taken(self, x):
        return x + self.cached.pop("default")  # @taken


def place():
    for name, module in parts.items():
        module.to(rules[name])


def prepare(stage):
    for name, module in parts.items():
        module.to("cuda" if name in presets.get(stage, []) else "cpu")


def ruled(x):
    return parts["embed"](x)  # @ruled


def parked(x):
    return parts["embed"](x)  # @parked


place()
attempt(ruled, gpu())
prepare("draw")
prepare("train")
attempt(parked, gpu())
store = Store()
store.keep("default")
attempt(store.taken, gpu())
"""


def test_a_device_by_a_key_is_followed_to_the_entry_of_its_table(run_python):
    result = run_python(TABLES, sim=1)
    evidence = Evidence(result, TABLES)
    assert ("embed", "rules[...]") in evidence.of_all("ruled", "stay-from")
    assert ("presets", "presets[...]") in evidence.of_all("parked", "device-from")


def test_what_was_popped_out_of_an_attribute_came_through_where_that_is_stored(run_python):
    result = run_python(TABLES, sim=1)
    assert ("cached", "self.cached") in Evidence(result, TABLES).of("taken", "came-through-at")
