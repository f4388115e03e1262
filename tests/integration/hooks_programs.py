"""Programs whose lines carry marks: `# @name` at the end of a line, and what devsan found there."""

import re

# What programs are made with that have many refused operators: a tensor on the device, and a failure that is expected.
HELPERS = """\
def gpu(*sizes):
    return torch.ones(sizes or (3,), device="cuda")


def attempt(body):
    try:
        body()
    except RuntimeError:
        return
    raise AssertionError("nothing was raised")
"""


def line_of(source, mark):
    """The line number of `# @mark` in the text of a program."""
    lines = [number for number, line in enumerate(source.splitlines(), 1) if re.search(rf"# @{mark}\b", line)]
    assert len(lines) == 1, f"mark {mark} stands in lines {lines}"
    return lines[0]


def found_at(result, source, mark):
    """The one raised finding at a marked line."""
    line = line_of(source, mark)
    found = [f for f in result.raised() if f["where"] and f["where"]["line"] == line]
    assert len(found) == 1, f"{mark}: {len(found)} findings at line {line}: {places(result)}"
    return found[0]


def places(result):
    """Lines and operators of all raised findings, for messages."""
    return [(f["where"] and f["where"]["line"], f["op"], f["handled"]) for f in result.raised()]


def odd_operand(finding):
    odd = [operand for operand in finding["operands"] if operand["odd"]]
    assert len(odd) == 1, finding["operands"]
    return odd[0]


def steps_of(operand):
    """The lineage as (line, how), newest first."""
    return [(step["line"], step["how"]) for step in operand["lineage"]]
