"""The calls that led to the line where a value came to its device: exactly those, and never those of another value."""

from hooks_programs import HELPERS, found_at, odd_operand

CALLS = """\
import functools
import threading
import torch

""" + HELPERS + """


def fresh(size):
    return torch.zeros(size)  # @made


def through(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)  # @handed on
    return wrapper


@through
def wrapped(size):
    return fresh(size)  # @in wrapped


class Stage(torch.nn.Module):
    def forward(self, size):
        return fresh(size)  # @in forward


def first():
    return fresh(3)  # @in first


def second():
    return [fresh(3) for _ in range(2)][1]  # @in second


def deep(levels):
    return deep(levels - 1) if levels else fresh(3)  # @deep


def moved():
    return gpu().cpu()  # @moved away


def in_thread():
    made = []
    thread = threading.Thread(target=lambda: made.append(first()))  # @started
    thread.start()
    thread.join()
    return made[0]


def one():
    made, other = first(), second()  # @of one
    gpu() + made  # @one


def two():
    other, made = first(), second()  # @of two
    gpu() + made  # @two


def three():
    made = wrapped(3)  # @of three
    gpu() + made  # @three


def four():
    made = Stage()(3)  # @of four
    gpu() + made  # @four


def five():
    made = deep(20)
    gpu() + made  # @five


def six():
    made = moved()  # @of six
    gpu() + made * 2  # @six


def seven():
    made = in_thread()
    gpu() + made  # @seven


for body in (one, two, three, four, five, six, seven):
    attempt(body)  # @attempted
"""


def calls_of(result, source, mark):
    """The marks of the calls that led to the newest step that brought the odd operand to its device."""
    lines = source.splitlines()
    steps = odd_operand(found_at(result, source, mark))["lineage"]
    calls = next(step for step in steps if step["how"] != "derived").get("calls", [])
    marks = [lines[call["line"] - 1].partition("# @")[2] for call in calls]
    return [mark for mark, before in zip(marks, ["", *marks]) if mark != before]  # comprehensions: once


def test_the_calls_that_led_to_a_value_are_told(run_python):
    result = run_python(CALLS, sim=1)
    assert result.status == 0, result.stderr
    expected = {
        "one": ["in first", "of one"], "two": ["in second", "of two"],
        "three": ["in wrapped", "handed on", "of three"], "four": ["in forward", "of four"], "six": ["of six"],
    }
    for mark, calls in expected.items():
        found = calls_of(result, CALLS, mark)
        assert found[:len(calls)] == calls, mark
        assert found[-1] == "attempted", mark  # the main script's
    assert calls_of(result, CALLS, "seven") == ["in first", "started"]


def test_of_many_calls_the_innermost_are_told(run_python):
    result = run_python(CALLS, sim=1)
    steps = odd_operand(found_at(result, CALLS, "five"))["lineage"]
    assert len(steps[0]["calls"]) == 8
    assert {call["function"] for call in steps[0]["calls"]} == {"deep"}


REUSED = """\
import gc
import torch

HELPER = "def helper(size):\\n    return torch.zeros(size)\\n"
CALLER = "def caller(helper):\\n    return helper(3)\\n"
FAIL = "def fail(made):\\n    torch.ones(3, device='cuda') + made\\n"


def function(source, name, file, lines):
    space = {"torch": torch}
    exec(compile("\\n" * lines + source, file, "exec"), space)
    return space[name]


# Code objects die and others take their place in memory, helpers as well as callers.
keep = None
for k in range(400):
    helper = function(HELPER, "helper", f"helper{k}.py", k)
    caller = function(CALLER, "caller", f"caller{k}.py", k)
    made = caller(helper)
    if k % 7 == 0:
        keep = caller
    if k % 50 == 49:
        fail = function(FAIL, "fail", f"fail{k}.py", k)  # a line of its own makes a finding of its own
        try:
            fail(made)
        except RuntimeError:
            pass
        print(k)
    del helper, caller, made
    if k % 3 == 0:
        gc.collect()
"""


def test_calls_of_code_that_is_gone_are_not_taken_for_those_of_new_code(run_python):
    result = run_python(REUSED, sim=1)
    assert result.status == 0, result.stderr
    findings = [f for f in result.report["findings"] if f["kind"] == "device-mismatch"]
    told = []
    for finding in findings:
        step = odd_operand(finding)["lineage"][0]
        k = int(step["file"].rpartition("helper")[2].removesuffix(".py"))
        call = step["calls"][0]
        assert (step["line"], call["line"]) == (k + 2, k + 2)
        assert call["file"].endswith(f"caller{k}.py") and call["function"] == "caller"
        told.append(k)
    assert sorted(told) == [int(k) for k in result.stdout.split()]


def test_a_deprecated_function_is_called_by_the_line_that_names_it(run_python):
    run = run_python("""
        import torch
        import typing_extensions

        loss = typing_extensions.deprecated("of old")(torch.nn.functional.mse_loss)
        loss(torch.ones(3, device="meta"), torch.ones(3))
    """)
    [finding] = run.raised()
    assert finding["where"]["source"].strip() == 'loss(torch.ones(3, device="meta"), torch.ones(3))'
