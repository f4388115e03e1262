"""Patches in the report: `patch` applies them, and the program then does what it could not."""

import subprocess

import pytest

from harness import need_simulated_devices
from launchers import Launcher

FACTORY = """\
import torch


def weighted(x):
    weights = torch.linspace(0, 1, x.shape[-1])
    return (x * weights).sum()


print(weighted(torch.ones(3, 4, device="cuda")).item())
"""

BUFFER = """\
import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Linear(width, width)
        self.scale = torch.ones(width)

    def forward(self, x):
        return self.body(x) * self.scale


net = Scaled(4).to("cuda")
print(tuple(net(torch.ones(2, 4, device="cuda")).shape), "scale" in net.state_dict())
"""

DROPPED = """\
import torch

x = torch.ones(3, device="cuda")
shift = torch.ones(3)
shift.to(x.device)
print((x + shift).sum().item())
"""


RANKS = """\
import os
import torch


def table():
    return torch.arange(4.0)


torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
total = (torch.ones(4, device="cuda") * table()).sum()
os.write(1, f"{total.item()} on {total.device}\\n".encode())
"""


def patches(result):
    return [patch for finding in result.raised() for patch in (finding["fix"] or {}).get("patches", [])]


@pytest.mark.parametrize("source, printed", [
    (FACTORY, "6.0\n"), (BUFFER, "(2, 4) False\n"), (DROPPED, "6.0\n"),
], ids=["factory", "buffer", "dropped"])
def test_a_program_with_the_patch_of_its_report_runs_to_its_end(run_python, source, printed):
    program = run_python.program(source)
    refused = run_python(program, sim=1)
    assert refused.status == 1
    (patch,) = patches(refused)
    assert patch["file"] == str(program)
    done = subprocess.run(["patch", "--quiet", "--batch", program], input=patch["diff"], text=True, capture_output=True)
    assert done.returncode == 0, done.stdout
    mended = run_python(program, sim=1)
    assert (mended.status, mended.stdout, mended.loud()) == (0, printed, []), mended.stderr


def test_without_the_text_of_the_program_there_is_no_patch(run_python):
    program = run_python.program(FACTORY)
    result = run_python(program, sim=1, env={"DEVSAN_OPTIONS": "source=0"})
    program.unlink()  # it could still be read, as long as it is what it was
    assert len(result.raised()) == 1 and patches(result) == []


def test_a_patch_of_a_line_that_every_rank_runs_is_right_on_every_rank(devsan, python, tmp_path):
    need_simulated_devices(python)
    launcher = Launcher(devsan, python, tmp_path)
    program = launcher.file("train.py", RANKS)
    command = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", program]
    refused = launcher.under_devsan(*command, options=["--sim", 2])
    assert refused.status == 1
    [finding] = [one for one in refused.report["findings"] if one["kind"] == "device-mismatch"]
    [patch] = finding["fix"]["patches"]
    subprocess.run(["patch", "--quiet", "--batch", program], input=patch["diff"], text=True, check=True)
    mended = launcher.under_devsan(*command, options=["--sim", 2])
    assert mended.status == 0, mended.stderr
    assert sorted(mended.stdout.split("\n")) == ["", "6.0 on cuda:0", "6.0 on cuda:1"]
