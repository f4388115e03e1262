"""What the tests of launchers share: commands that start several processes, and where each of them says that it is."""

import dataclasses
import os
import pathlib
import socket
import subprocess
import textwrap

from harness import Runner, shell_status, view

STAND_INS = pathlib.Path(__file__).parent / "stand_ins"

# A rank of a process group: its number in the group is what the group says.
GROUP_PROGRAM = """
    import os
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    total = torch.ones(1)
    dist.all_reduce(total)
    os.write(1, f"rank {dist.get_rank()} counts {int(total)}\\n".encode())
    dist.destroy_process_group()
"""

COUNTED = {"rank 0 counts 2", "rank 1 counts 2"}
TWO_RANKS = [(0, 0, 2, 0), (1, 1, 2, 0)]  # rank, local rank, world size, node

# A process that belongs to no group of torch's.
LONE_PROGRAM = """
    import torch

    print(int(torch.ones(2).sum()), flush=True)
"""


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


@dataclasses.dataclass
class Launched:
    status: int
    stdout: str
    stderr: str
    report: dict | None

    @property
    def ranks(self):
        """The processes that have a rank, by it."""
        told = sorted((p for p in self.report["run"]["processes"] if p["rank"] is not None), key=lambda p: p["rank"])
        return [(p["rank"], p["local_rank"], p["world_size"], p["node"]) for p in told]


class Launcher:
    """Starts commands in a folder of their own, where their traces lie in `traces`."""

    def __init__(self, devsan, python, folder):
        self.devsan = devsan
        self.python = python
        self.folder = folder
        self.out = folder / "traces"
        self.runner = Runner(devsan, python, folder)

    @property
    def library(self):
        return self.runner.library

    def file(self, name, text):
        path = self.folder / name
        path.write_text(textwrap.dedent(text))
        return path

    def environment(self, variables=None):
        found_first = f"{STAND_INS}:{pathlib.Path(self.devsan).parent}:{os.environ['PATH']}"
        return self.runner.environment({"PATH": found_first, "OMP_NUM_THREADS": "1", **(variables or {})})

    def run(self, *command, env=None, timeout=300):
        done = subprocess.run(list(map(str, command)), env=self.environment(env), cwd=self.folder, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, timeout=timeout)
        return Launched(shell_status(done.returncode), done.stdout, done.stderr, self.report())

    def report(self):
        return view(self.devsan, self.out) if list(self.out.glob("*.devsan")) else None

    def under_devsan(self, *command, env=None, options=()):
        return self.run(self.devsan, "run", "--out", self.out, *options, "--", *command, env=env)
