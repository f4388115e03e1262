"""What programs about evidence have in common, and how a test looks at what was found."""

from hooks_programs import found_at, odd_operand

PROLOGUE = """\
import torch


def gpu(*sizes):
    return torch.ones(sizes or (3,), device="cuda")


def attempt(body, *args):
    try:
        body(*args)
    except RuntimeError as error:
        return error
    raise AssertionError("nothing was raised")


class Plain:
    pass

"""


class Evidence:
    """The evidence about the odd operand of the finding at a mark, in terms of the marks of a program."""

    def __init__(self, result, source):
        assert result.status == 0, result.stderr
        self.result = result
        self.source = source

    def of(self, mark, kind):
        """(mark or None, text) of each piece of one kind."""
        operand = odd_operand(found_at(self.result, self.source, mark))
        return [(self.mark_of(e), e["text"]) for e in operand.get("evidence", []) if e["kind"] == kind]

    def of_all(self, mark, kind):
        """The same of all operands of the finding, of which several may be odd, each piece once."""
        operands = found_at(self.result, self.source, mark)["operands"]
        pieces = [(self.mark_of(e), e["text"]) for operand in operands for e in operand.get("evidence", []) if e["kind"] == kind]
        return list(dict.fromkeys(pieces))

    def mark_of(self, evidence):
        if evidence["file"] is None:
            return None
        line = self.source.splitlines()[evidence["line"] - 1]
        return line.split("# @")[1] if "# @" in line else f"line {evidence['line']}: {line.strip()}"
