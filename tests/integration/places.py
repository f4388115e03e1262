"""The program that every place runs, and what is expected of devsan there."""

import os
import subprocess
import textwrap

import pytest

from harness import need_simulated_devices, shell_status, view
from hooks_programs import line_of, places

# An operand that stays behind, found in `forward`; the program goes on.
PROGRAM = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.scale = torch.ones(4)  # @cause

    def forward(self, x):
        return self.linear(x) * self.scale  # @here


def run():
    net = Net().to("cuda")
    try:
        net(torch.ones(2, 4, device="cuda"))
    except RuntimeError:
        print("refused", flush=True)


if __name__ == "__main__":
    run()
"""
REFUSED = "refused\n"


class Place:
    """One command, under devsan."""

    def __init__(self, devsan, python, folder):
        self.devsan = devsan
        self.python = python
        self.folder = folder
        self.out = folder / "out"

    def file(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def needs(self, *modules):
        code = "import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, sys.argv[1:])))"
        if subprocess.run([self.python, "-c", code, *modules]).returncode:
            pytest.skip(f"{self.python} has no {' or no '.join(modules)}; scripts/setup --tests installs it into .venv")

    def run(self, *command, env=None, stdin="", timeout=300):
        """`stdin`: an open file, or a text. What is written is the program's: devsan is quiet."""
        need_simulated_devices(self.python)
        command = [self.devsan, "run", "--quiet", "--sim", "1", "--out", self.out, "--", *command]
        given = {"input": stdin} if isinstance(stdin, str) else {"stdin": stdin}
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=self.folder, timeout=timeout,
                              env={**os.environ, **(env or {})}, **given)
        self.status, self.stdout, self.stderr = shell_status(done.returncode), done.stdout, done.stderr
        return self

    @property
    def report(self):
        return view(self.devsan, self.out)

    def raised(self):
        return [f for f in self.report["findings"] if f["kind"] == "device-mismatch" and f["raised"]]

    def ended(self, stdout=REFUSED, stderr="", status=0):
        """The process did what it does without devsan."""
        assert (self.status, self.stdout, self.stderr) == (status, stdout, stderr)
        return self

    def found(self, file, source=PROGRAM, count=1):
        """The finding of PROGRAM, in a file of that name, and nothing else. `source`: what lies in the file."""
        report = self.report
        loud = [f for f in report["findings"] if f["severity"] != "note"]
        assert len(loud) == 1 and report["damage"] == [], (places(self), [f["kind"] for f in loud])
        here, cause = line_of(source, "here"), line_of(source, "cause")
        [found] = loud
        where = found["where"]
        assert (where["line"], where["function"], found["count"]) == (here, "Net.forward", count), where
        assert where["file"].endswith(file), where
        assert [operand["name"] for operand in found["operands"]] == ["self.linear(x)", "self.scale"]
        assert where["source"].strip() == source.splitlines()[here - 1].strip()
        root = found["root_cause"]
        assert root and (root["line"], root["operand"]) == (cause, "self.scale") and root["file"].endswith(file), root
