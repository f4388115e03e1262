"""Which raised findings the program took care of, and that its exceptions stay what they were."""

import re

import pytest
from hooks_programs import found_at

RAISE = 'torch.ones(3, device="meta") + torch.ones(3)'

HANDLED = {
    "caught, and operators follow": f"""
import torch
try:
    {RAISE}
except RuntimeError:
    pass
torch.ones(3) + 1
""",
    "caught at the very end": f"""
import torch
try:
    {RAISE}
except RuntimeError:
    pass
""",
    "caught in a function further out": f"""
import torch
def inner():
    {RAISE}
def middle():
    try:
        inner()
    finally:
        torch.ones(3) + 1
try:
    middle()
except RuntimeError as error:
    kept = error
torch.ones(3) + 1
""",
    "caught and raised as another that is caught": f"""
import torch
try:
    try:
        {RAISE}
    except RuntimeError as error:
        raise ValueError("another") from error
except ValueError:
    pass
torch.ones(3) + 1
""",
    "suppressed by a context manager": f"""
import contextlib, torch
with contextlib.suppress(RuntimeError):
    {RAISE}
torch.ones(3) + 1
""",
    "caught in a worker thread": f"""
import threading, torch
def work():
    try:
        {RAISE}
    except RuntimeError:
        pass
    torch.ones(3) + 1
thread = threading.Thread(target=work)
thread.start()
thread.join()
""",
    "ended by sys.exit(0)": f"""
import sys, torch
try:
    {RAISE}
except RuntimeError:
    sys.exit(0)
""",
}


@pytest.mark.parametrize("how", HANDLED)
def test_a_caught_exception_is_a_warning(run_python, how):
    result = run_python(HANDLED[how])
    assert result.status == 0, result.stderr
    assert [(f["severity"], f["handled"]) for f in result.raised()] == [("warning", True)]


UNCAUGHT = {
    "at the top": (f"""
import torch
{RAISE}
""", 1),
    "through finally blocks that run operators": (f"""
import torch
def inner():
    try:
        {RAISE}
    finally:
        torch.ones(3) + 1
inner()
""", 1),
    "through context managers that run operators": (f"""
import contextlib, torch
@contextlib.contextmanager
def around():
    try:
        yield
    finally:
        torch.ones(3) + 1
class Around:
    def __enter__(self):
        return self
    def __exit__(self, *error):
        torch.ones(3) + 1
with around(), Around():
    {RAISE}
""", 1),
    "logged by operators, and raised again": (f"""
import torch
try:
    {RAISE}
except RuntimeError:
    torch.ones(3) + 1
    raise
""", 1),
    "with operators at exit": (f"""
import atexit, torch
atexit.register(lambda: torch.ones(3) + 1)
{RAISE}
""", 1),
    "with operators in sys.excepthook": (f"""
import sys, torch
def hook(*error):
    torch.ones(3) + 1
sys.excepthook = hook
{RAISE}
""", 1),
    "with operators in a destructor on the way": (f"""
import torch
class Cleanup:
    def __del__(self):
        torch.ones(3) + 1
def inner():
    cleanup = Cleanup()
    {RAISE}
def outer():
    inner()
try:
    outer()
except RuntimeError as error:
    error.__traceback__ = None
    raise
""", 1),
    "in a worker thread": (f"""
import threading, torch
threading.excepthook = lambda args: None
def work():
    {RAISE}
thread = threading.Thread(target=work)
thread.start()
thread.join()
torch.ones(3) + 1
""", 0),
}


@pytest.mark.parametrize("how", UNCAUGHT)
def test_an_uncaught_exception_is_an_error(run_python, how):
    source, status = UNCAUGHT[how]
    result = run_python(source)
    assert result.status == status
    assert [(f["severity"], f["handled"]) for f in result.raised()] == [("error", False)]


EXCEPTIONS = """
import sys, traceback, warnings
import torch

warnings.simplefilter("always")
warnings.showwarning = lambda message, category, *rest: print("warning", category.__name__, message)


class Sub(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return super().__torch_function__(function, types, args, kwargs or {})


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad + torch.ones(3, device="meta")


leaf = torch.ones(3, requires_grad=True)
attempts = [
    lambda: torch.ones(3, device="meta") + torch.ones(3),
    lambda: torch.ones(3, device="meta").as_subclass(Sub) * torch.ones(3),
    lambda: torch.cat([torch.ones(3), torch.ones(3, device="meta")]),
    lambda: torch.randn(3, generator=torch.Generator("cpu"), device="meta"),
    lambda: torch.ops.aten.mul(torch.ones(3, device="meta"), torch.ones(3)),
    lambda: torch.func.vmap(lambda a, b: a * b)(torch.ones(3, 2, device="meta"), torch.ones(3, 2)),
    lambda: Wrong.apply(leaf).sum().backward(),
    lambda: torch.ones(3)[torch.ones(2, dtype=torch.long, device="meta")],
    lambda: torch.ones(2, 3) @ torch.ones(2, 3),
    lambda: torch.ones(3).add_(torch.ones(2)),
    lambda: torch.ones(3, device="meta").item(),
    lambda: torch.ones(3)[5],
    lambda: torch.linalg.inv(torch.zeros(2, 2)),
    lambda: torch.ones(3, device="nonsense"),
    lambda: torch.ones(3).view(2, 2),
    lambda: torch.add(torch.ones(3), "text"),
    lambda: torch.ones(3).sum().T if False else torch.ones(2, 2, 2).T,
]


def describe(error, depth=0):
    if error is None or depth > 4:
        return
    print(depth, type(error), repr(str(error)), error.args, getattr(error, "__notes__", None), sorted(vars(error)))
    for frame, line in traceback.walk_tb(error.__traceback__):
        print("   ", frame.f_code.co_name, line)
    print("    suppress", error.__suppress_context__, "refs", sys.getrefcount(error))
    describe(error.__cause__, depth + 1)
    describe(error.__context__, depth + 1)


for k, body in enumerate(attempts):
    try:
        try:
            raise KeyError("outer")
        except KeyError:
            body()
    except Exception as error:
        print(k)
        describe(error)
    else:
        print(k, "nothing")
print(sys.exc_info())
"""


def without_temporary_names(text):
    """Torch up to 2.6 leaves a temporary directory to the interpreter's end, and a warning names it."""
    return re.sub(r"/tmp\w{8}'", "/tmp…'", text)


def test_exceptions_and_warnings_of_torch_stay_what_they_are(run_python, tmp_path):
    program = tmp_path / "exceptions.py"
    program.write_text(EXCEPTIONS)
    plain = run_python(program, plain=True)
    watched = run_python(program)
    assert plain.status == 0, plain.stderr
    assert without_temporary_names(watched.stdout) == without_temporary_names(plain.stdout)
    assert watched.status == 0
    assert len(watched.raised()) == 6


LATER = f"""
import torch
try:
    {RAISE}  # @caught
except RuntimeError:
    pass
torch.ones(3) + 1
for k in range(3):
    try:
        {RAISE}  # @counted
    except RuntimeError:
        pass
{RAISE}  # @uncaught
"""


def test_each_site_is_judged_by_itself(run_python):
    result = run_python(LATER)
    assert result.status == 1
    judged = {mark: found_at(result, LATER, mark) for mark in ("caught", "counted", "uncaught")}
    assert {mark: finding["handled"] for mark, finding in judged.items()} == {
        "caught": True, "counted": True, "uncaught": False}
    assert judged["counted"]["count"] == 3


TRIED = """
import numpy, torch

def to_host(x):
    try:
        return numpy.asarray(x)
    except TypeError:
        return x.cpu().numpy()

x = torch.ones(3, device="cuda")
print(to_host(x).sum(), to_host(x * 2).sum())
"""

REFUSED = """
import torch
net = torch.nn.Linear(3, 2).to("cuda")
def evaluate(x):
    return net(x).detach().numpy()
evaluate(torch.ones(4, 3, device="cuda"))
"""


def test_a_program_that_tries_numpy_and_falls_back_is_left_in_peace(run_python):
    result = run_python(TRIED, sim=1)
    assert (result.status, result.stdout, result.stderr) == (0, "3.0 6.0\n", "")
    assert result.loud() == []
    tried = [f for f in result.findings if f["raised"]]
    assert tried and all(f["handled"] and f["severity"] == "note" for f in tried)


def test_what_numpy_refused_is_said_when_the_program_ends_of_it(run_python):
    result = run_python(REFUSED, sim=1)
    assert result.status == 1
    [finding] = result.raised()
    assert finding["severity"] == "error" and finding["where"]["line"] == 5 and finding["root_cause"]["line"] == 5
    odd = next(operand for operand in finding["operands"] if operand["odd"])
    assert odd["name"] == "net(x).detach()" and odd["device"] == "cuda:0" and odd["shape"] is None
    assert "device mismatch at" in result.stderr and "net(x).detach()" in result.stderr
