"""`devsan.allow` and `devsan.expect` in programs, with and without devsan."""

import subprocess

import pytest

from harness import ROOT

PACKAGE = {"PYTHONPATH": str(ROOT / "launch")}
PRELUDE = """
import sys, threading
import devsan
assert "torch" not in sys.modules and "ctypes" not in sys.modules
import torch

def mix(sites=1):
    for _ in range(sites):
        try:
            torch.ones(3, device="cuda") + torch.ones(3)
        except RuntimeError:
            pass
    torch.ones(1) + 1   # so that the exception is seen to be handled
"""


@pytest.fixture
def run(run_python, tmp_path):
    def run(source, **kwargs):
        program = tmp_path / "program.py"
        program.write_text(PRELUDE + source)
        env = {**PACKAGE, **kwargs.pop("env", {})}
        return run_python(program, sim=1, env=env, **kwargs)

    return run


def silences(result):
    return [(f["silence"]["by"], f["count"]) for f in result.report["suppressed"]]


def test_the_package_needs_nothing_and_does_nothing_without_devsan(python, tmp_path):
    done = subprocess.run([python, "-I", "-c", f"""
import sys
sys.path.insert(0, {str(ROOT / 'launch')!r})
import devsan
with devsan.allow("no such kind") as a, devsan.expect("device-mismatch", "any") as b:
    pass
assert (a.count, b.count) == (0, 0)

@devsan.expect("device-mismatch")
def f(x, *, y):
    return x + y

assert f(1, y=2) == 3 and f.__name__ == "f"
assert "torch" not in sys.modules
assert devsan.allow("any").__exit__ and issubclass(devsan.ExpectationError, AssertionError)
"""], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_allowed_findings_are_counted_and_not_told_of(run):
    result = run("""
with devsan.allow("device-mismatch") as found:
    mix(3)
print(found.count)
""", options=["--fail-on", "any", "--halt"])
    assert (result.status, result.stdout, result.stderr) == (0, "3\n", "")
    assert result.findings == [] and silences(result) == [("allow", 3)]


def test_the_same_line_is_told_of_outside(run):
    result = run("""
for k in range(4):
    if k % 2:
        with devsan.allow("any"):
            mix()
    else:
        mix()
""")
    assert [f["count"] for f in result.findings] == [2] and silences(result) == [("allow", 2)]


def test_expect_takes_what_is_found_and_lets_the_exception_pass(run):
    result = run("""
try:
    with devsan.expect("device-mismatch") as found:
        torch.ones(3, device="cuda") + torch.ones(3)
except RuntimeError as error:
    print("passed", found.count, "same device" in str(error))
""")
    assert (result.status, result.stdout, result.stderr) == (0, "passed 1 True\n", "")
    assert silences(result) == [("expect", 1)]


def test_expect_raises_where_nothing_was_found(run):
    result = run("""
with devsan.expect("device-mismatch", "async-race"):
    torch.ones(3) + torch.ones(3)
""")
    assert result.status == 1
    assert "ExpectationError: devsan found none of the expected kinds: device-mismatch, async-race" in result.stderr


def test_expect_leaves_an_exception_of_the_program_alone(run):
    result = run("""
try:
    with devsan.expect("device-mismatch"):
        {}["key"]
except KeyError:
    print("passed")
""")
    assert (result.status, result.stdout) == (0, "passed\n")


def test_other_kinds_are_told_of(run):
    result = run("""
with devsan.allow("async-race", "implicit-sync") as found:
    mix()
print(found.count)
""")
    assert result.stdout == "0\n" and len(result.findings) == 1 and silences(result) == []


def test_a_kind_that_does_not_exist_is_an_error(run):
    result = run("""
for wrong in (lambda: devsan.allow(), lambda: devsan.expect(3), lambda: devsan.allow("typo").__enter__()):
    try:
        wrong()
    except (TypeError, ValueError) as error:
        print(type(error).__name__, "typo" in str(error))
mix()
""")
    assert result.stdout.split("\n")[:3] == ["TypeError False", "TypeError False", "ValueError True"]
    assert len(result.findings) == 1


def test_every_kind_has_a_name(run):
    kinds = [line.split('"')[1] for line in (ROOT / "trace/finding_kinds.def").read_text().splitlines()
             if line.startswith("DEVSAN_FINDING_KIND")]
    result = run(f"""
with devsan.allow(*{kinds!r}):
    mix()
""")
    assert result.status == 0 and silences(result) == [("allow", 1)]


def test_contexts_nest_and_the_innermost_that_names_the_kind_counts(run):
    result = run("""
with devsan.allow("device-mismatch") as outer:
    mix()
    with devsan.allow("async-race") as other, devsan.expect("device-mismatch") as inner:
        mix()
        mix()
    mix()
print(outer.count, other.count, inner.count)
same = devsan.allow("any")
with same:
    with same:
        mix()
    mix()
mix()
""")
    assert result.stdout == "2 0 2\n"
    assert sum(count for _, count in silences(result)) == 6
    assert [f["count"] for f in result.findings] == [1]


def test_decorated_functions_are_scopes_of_their_own(run):
    result = run("""
@devsan.allow("device-mismatch")
def deep(n):
    mix()
    return deep(n - 1) if n else "end"

print(deep(3))
mix()

for kind in ("async def f(): pass", "def f(): yield", "async def f(): yield"):
    names = {}
    exec(kind, names)
    try:
        devsan.expect("any")(names["f"])
    except TypeError:
        print("refused")
""")
    assert result.stdout.split() == ["end", "refused", "refused", "refused"]
    assert [f["count"] for f in result.findings] == [1] and sum(count for _, count in silences(result)) == 4


def test_threads_that_are_started_inside_are_not_in_it(run):
    result = run("""
with devsan.allow("any") as found:
    thread = threading.Thread(target=mix)
    thread.start()
    thread.join()
print(found.count)
""")
    assert result.stdout == "0\n" and len(result.findings) == 1


def test_a_forked_child_is_in_it(run):
    result = run("""
import os
a, b = torch.ones(3, device="cuda"), torch.ones(3)   # a child makes no device tensors of its own

def add():
    try:
        a + b
    except RuntimeError:
        pass

with devsan.allow("any") as found:
    add()
    if os.fork() == 0:
        add()
        add()
        os._exit(0)
    os.wait()
print(found.count)
""")
    assert result.stdout == "1\n" and result.findings == [] and silences(result) == [("allow", 3)]


def test_the_backward_that_is_called_inside_is_in_it(run):
    result = run("""
class Mixes(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        print("engine" if threading.current_thread() is not threading.main_thread() else "main")
        mix()
        return gradient

for device in ("cpu", "cuda"):
    x = torch.ones(3, device=device, requires_grad=True)
    with devsan.expect("device-mismatch") as found:
        Mixes.apply(x).sum().backward()
    print(found.count)
""")
    assert result.stdout.split() == ["main", "1", "engine", "1"], result.stderr
    assert result.findings == [] and sum(count for _, count in silences(result)) == 2


def test_contexts_that_end_out_of_order_or_on_another_thread_end_all_the_same(run):
    result = run("""
first, second = devsan.allow("device-mismatch"), devsan.allow("device-mismatch")
first.__enter__()
second.__enter__()
first.__exit__(None, None, None)
mix()
second.__exit__(None, None, None)
print(first.count, second.count)

third = devsan.allow("device-mismatch")
third.__enter__()
thread = threading.Thread(target=third.__exit__, args=(None, None, None))
thread.start()
thread.join()
mix()
""")
    assert result.stdout == "0 1\n" and [f["count"] for f in result.findings] == [1]


def test_many_threads_enter_one_object(run):
    result = run("""
shared = devsan.allow("device-mismatch")

def work():
    for _ in range(20):
        with shared:
            mix()

threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
mix()
""")
    assert result.status == 0, result.stderr
    assert [f["count"] for f in result.findings] == [1] and sum(count for _, count in silences(result)) == 80


def test_nothing_is_expected_of_a_devsan_that_is_off(run):
    source = """
with devsan.expect("device-mismatch"):
    torch.ones(3) + 1
print("passed")
"""
    for env in ({"DEVSAN_OPTIONS": "enabled=0"}, {"DEVSAN_OPTIONS": "hooks=/no/such/folder:quiet=1"}):
        assert run(source, preload=True, env=env).stdout == "passed\n"


def test_a_context_may_begin_before_torch_is_loaded(run_python, tmp_path):
    program = tmp_path / "early.py"
    program.write_text("""
import devsan
with devsan.allow("device-mismatch") as found:
    import torch
    try:
        torch.ones(3, device="cuda") + torch.ones(3)
    except RuntimeError:
        pass
print(found.count)
""")
    result = run_python(program, sim=1, env=PACKAGE)
    assert (result.stdout, result.findings) == ("1\n", []) and silences(result) == [("allow", 1)]
