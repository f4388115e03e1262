"""What operands are called, and that looking for their names disturbs nothing."""

from hooks_programs import found_at, line_of, odd_operand

PROLOGUE = """\
import torch


def gpu(*sizes):
    return torch.ones(sizes or (3,), device="cuda")


def attempt(body):
    try:
        body()
    except RuntimeError as error:
        return error
    raise AssertionError("nothing was raised")


class Plain:
    pass
"""

NAMED = PROLOGUE + """
GLOBAL = torch.ones(3)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
        self.norm = torch.nn.BatchNorm1d(3)
        self.mask = torch.ones(3)

    def forward(self, x):
        return x + self.mask  # @attribute


def program():
    local = torch.ones(3)
    attempt(lambda: gpu() + local)  # @closure
    outer = Plain()
    outer.inner = Plain()
    outer.inner.value = torch.ones(3)
    attempt(lambda: gpu() + outer.inner.value)  # @nested
    items = [None, (torch.ones(2), torch.ones(3))]
    attempt(lambda: gpu() + items[1][1])  # @list
    table = {"scale": torch.ones(3), 5: None}
    attempt(lambda: gpu() + table["scale"])  # @dict
    model = Model()
    attempt(lambda: model(gpu()))
    attempt(lambda: gpu(1, 3) @ model.layers[1].weight)  # @parameter
    attempt(lambda: gpu() + model.norm.running_mean)  # @buffer
    leaf = torch.ones(3, requires_grad=True)
    leaf.sum().backward()
    attempt(lambda: gpu() + leaf.grad)  # @gradient
    attempt(lambda: gpu() + GLOBAL)  # @global
    attempt(lambda: gpu() + torch.zeros(3))  # @temporary

    def with_default(value=torch.ones(3)):
        gpu() + value  # @default

    attempt(with_default)
    alone = torch.ones(3)
    try:
        gpu() + alone  # @local
    except RuntimeError:
        pass


program()
"""


def test_operands_are_called_what_the_program_calls_them(run_python):
    result = run_python(NAMED, sim=1)
    assert result.status == 0, result.stderr
    expected = {
        "local": ("alone", "local"),
        "closure": ("local", "local"),
        "default": ("value", "local"),
        "global": ("GLOBAL", "local"),
        "attribute": ("self.mask", "attribute"),
        "nested": ("outer.inner.value", "attribute"),
        "list": ("items[1][1]", "attribute"),
        "dict": ("table['scale']", "attribute"),
        "parameter": ("model.layers[1].weight", "parameter"),
        "buffer": ("model.norm.running_mean", "buffer"),
        "gradient": ("leaf.grad", "attribute"),
        "temporary": ("torch.zeros(3)", "temporary"),
    }
    odd = {mark: odd_operand(found_at(result, NAMED, mark)) for mark in expected}
    assert {mark: (operand["name"], operand["is"]) for mark, operand in odd.items()} == expected


# A generator may have no Python object, and stands beside a tensor that has one.
BESIDE_A_GENERATOR = PROLOGUE + """
noise = gpu()
attempt(lambda: noise.normal_(generator=torch.Generator()))  # @inplace
attempt(lambda: torch.bernoulli(noise, generator=torch.Generator()))  # @functional
"""


def test_a_tensor_is_named_beside_a_generator(run_python):
    result = run_python(BESIDE_A_GENERATOR, sim=1)
    assert result.status == 0, result.stderr
    for mark in ("inplace", "functional"):
        operands = found_at(result, BESIDE_A_GENERATOR, mark)["operands"]
        assert [(operand["name"], operand["device"]) for operand in operands] == [
            ("noise", "cuda:0"), ("torch.Generator()", "cpu")
        ]


HOSTILE = PROLOGUE + """
calls = []


class Hostile:
    def __init__(self, value):
        object.__setattr__(self, "hidden", value)

    def __getattribute__(self, name):
        calls.append(name)
        return object.__getattribute__(self, name)

    def __getattr__(self, name):
        calls.append(name)
        raise AttributeError(name)

    @property
    def prop(self):
        calls.append("prop")

    def __eq__(self, other):
        calls.append("eq")
        return True

    def __hash__(self):
        calls.append("hash")
        return 1

    def __repr__(self):
        calls.append("repr")
        return "hostile"

    def __len__(self):
        calls.append("len")
        return 3

    def __bool__(self):
        calls.append("bool")
        return True

    def __iter__(self):
        calls.append("iter")
        return iter(())


class HostileDict(dict):
    def __getitem__(self, key):
        calls.append("getitem")

    def __iter__(self):
        calls.append("dict iter")
        return super().__iter__()

    def items(self):
        calls.append("items")
        return super().items()

    def __len__(self):
        calls.append("dict len")
        return 0


class HostileList(list):
    def __getitem__(self, key):
        calls.append("list getitem")

    def __len__(self):
        calls.append("list len")
        return 0


class Meta(type):
    def __getattribute__(cls, name):
        calls.append("meta " + name)
        return super().__getattribute__(name)

    def __instancecheck__(cls, instance):
        calls.append("instancecheck")
        return True


class WithMeta(metaclass=Meta):
    pass


def program():
    one = Hostile(1)
    holder = HostileDict()
    dict.__setitem__(holder, one, Hostile(HostileList([Plain(), WithMeta()])))
    dict.__setitem__(holder, "loop", holder)
    loop = []
    loop.append(loop)
    deep = None
    for _ in range(100000):
        deep = (deep,)
    value = Hostile(torch.ones(3))
    operand = object.__getattribute__(value, "hidden")
    keys = {operand_key: 1 for operand_key in ("a", 5, None, 2.5)}
    left = gpu()
    temporaries = [operand]
    del operand
    calls.clear()
    try:
        left + temporaries.pop()  # @hostile
    except RuntimeError:
        pass
    print(calls)


program()
"""


def test_looking_for_names_runs_no_code_of_the_program(run_python):
    result = run_python(HOSTILE, sim=1)
    assert (result.status, result.stdout) == (0, "[]\n"), result.stderr
    # Only the object's own dictionary leads to the operand, so that it was looked through is certain.
    assert odd_operand(found_at(result, HOSTILE, "hostile"))["name"] == "value.hidden"


OPTIMIZER_LIKE = PROLOGUE + """
calls = []


class Meta(type):
    def __getattribute__(cls, name):
        calls.append("meta " + name)
        return super().__getattribute__(name)


class Hostile(torch.nn.Module, metaclass=Meta):
    def __init__(self):
        super().__init__()
        self.mask = torch.ones(3)

    def __getattribute__(self, name):
        calls.append(name)
        return super().__getattribute__(name)

    @property
    def state(self):
        calls.append("state")

    def __eq__(self, other):
        calls.append("eq")
        return True

    def __hash__(self):
        calls.append("hash")
        return 1


class HostileKey(str):
    def __eq__(self, other):
        calls.append("key eq")
        return True

    def __hash__(self):
        calls.append("key hash")
        return hash("param_groups")


def program(hostile, mask, left):
    optimizer = Plain()
    optimizer.__dict__.update({"_parameters": {}, "_buffers": {}, HostileKey("param_groups"): []})
    optimizer.state = {left: {"key": mask}}
    optimizer.mask = mask
    calls.clear()
    try:
        left + mask  # @hostile
    except RuntimeError:
        pass
    print(calls)


hostile = Hostile()
program(hostile, hostile.mask, gpu())
"""


def test_what_looks_like_an_optimizer_runs_no_code_of_the_program(run_python):
    result = run_python(OPTIMIZER_LIKE, sim=1)
    assert (result.status, result.stdout) == (0, "[]\n"), result.stderr


UNCHANGED = PROLOGUE + """
import gc
import sys
import weakref

phases = []
gc.callbacks.append(lambda phase, info: phases.append(phase))


class Holder:
    def __init__(self):
        self.tensor = torch.ones(3)
        self.items = [self.tensor, {"key": self.tensor}]


def program():
    holder = Holder()
    left = gpu()
    objects = [holder, holder.tensor, holder.items, holder.items[1], left, sys.modules[__name__].__dict__]
    counts = [sys.getrefcount(one) for one in objects]
    gc.collect()
    gc.set_threshold(1)
    phases.clear()
    in_search = None
    try:
        left + holder.tensor  # @counted
    except RuntimeError:
        pass
    gc.set_threshold(700)
    print([sys.getrefcount(one) for one in objects] == counts, gc.isenabled())
    watch = weakref.ref(holder)
    tensor = weakref.ref(holder.tensor)
    del holder, objects, one
    return watch, tensor


one = None
watch, tensor = program()
print(watch() is None, tensor() is None)
gc.disable()
try:
    gpu() + torch.zeros(3)
except RuntimeError:
    pass
print(gc.isenabled())
"""


def test_looking_for_names_keeps_no_reference_and_leaves_the_collector_as_it_was(run_python):
    source = UNCHANGED.replace("del holder, objects, one", "del holder, objects")
    plain = run_python(source.replace('device="cuda"', 'device="meta"'), plain=True)
    result = run_python(source, sim=1)
    assert result.stdout == plain.stdout == "True True\nTrue True\nFalse\n", result.stderr


HUGE = PROLOGUE + """
import time

many = [torch.ones(1)] * 1_000_000
tables = [{k: [k] * 100 for k in range(100)} for _ in range(200)]
wide = Plain()
for k in range(20000):
    setattr(wide, f"name{k}", Plain())


def program(left, right):
    for _ in range(1):
        left + right  # @huge


def deep(depth, left, right):
    return deep(depth - 1, left, right) if depth else program(left, right)


began = time.monotonic()
attempt(lambda: deep(200, gpu(), torch.ones(3)))
print(time.monotonic() - began < 5)
"""


def test_huge_structures_and_deep_stacks_end_the_search_quickly(run_python):
    result = run_python(HUGE, sim=1)
    assert (result.status, result.stdout) == (0, "True\n"), result.stderr
    finding = found_at(result, HUGE, "huge")
    assert odd_operand(finding)["name"] == "right"
    assert finding["stack"][0]["line"] == line_of(HUGE, "huge")


CONTAINERS = PROLOGUE + """
import collections
import functools


class Deque(collections.deque):
    pass


def adds(value):
    def add(x):
        return x + value
    return add


def scale(x, weights):
    return x * weights


def program():
    frames = Deque(maxlen=100)
    for k in range(170):
        frames.append(torch.ones(3) if k == 160 else None)
    attempt(lambda: gpu() + frames[90])  # @deque
    members = {torch.ones(3)}
    attempt(lambda: gpu() + next(iter(members)))  # @set
    holder = Plain()
    holder.loss = functools.partial(scale, weights=torch.ones(3))
    attempt(lambda: gpu() + holder.loss.keywords["weights"])  # @partial
    holder.hook = adds(torch.ones(3))
    attempt(lambda: gpu() + holder.hook.__closure__[0].cell_contents)  # @hook
    holder.hook.cache = torch.ones(3)
    attempt(lambda: gpu() + holder.hook.cache)  # @function
    empty = Plain()
    empty.parts = [collections.deque(), set(), functools.partial(print), adds]
    attempt(lambda: gpu() + torch.zeros(3))  # @none


program()
"""


def test_what_sets_deques_partials_and_functions_keep_has_a_name(run_python):
    result = run_python(CONTAINERS, sim=1)
    assert result.status == 0, result.stderr

    def name(mark):
        return odd_operand(found_at(result, CONTAINERS, mark))["name"]

    assert name("deque") == "frames[90]"
    assert name("set") == "members{...}"
    assert name("partial") == "holder.loss.keywords['weights']"
    assert name("hook") == "holder.hook.<nonlocal value>"
    assert name("function") == "holder.hook.cache"
    assert name("none") == "torch.zeros(3)"


WAITING = PROLOGUE + """
class Table:
    def __init__(self):
        self.rows = torch.ones(3)


table = Table()
rows = torch.tensor([0, 1], device="cuda")
attempt(lambda: table.rows[rows])  # @read
attempt(lambda: table.rows[rows > 0])  # @masked
"""


def test_operators_that_may_wait_for_a_device_name_their_operands_like_others(run_python):
    """They have wrappers of their own, in which g++ does not make the call of what goes on a jump."""
    result = run_python(WAITING, sim=1)
    assert result.status == 0, result.stderr
    for mark in ("read", "masked"):
        operand = odd_operand(found_at(result, WAITING, mark))
        assert (operand["name"], operand["is"]) == ("table.rows", "attribute")
