"""The exception that ends a rank is reported with the text that Python prints for it, without running code of the program."""

import subprocess

import pytest

from harness import Runner, view

# Each rank ends in a way of its own, and leaves a note of it; nobody ends the others for that.
PROGRAM = """
import os, subprocess, sys, tempfile
RAISES = {
    "file": "open('/nonexistent/data.bin')",
    "rename": "os.rename('/nonexistent/a', '/nonexistent/b')",
    "own": "raise ConfigError('lr', 3)",
    "own-nested": "raise RuntimeError(ConfigError('lr', [1.5, None, True]))",
    "several": "raise ValueError('bad value', 3)",
    "number": "raise ValueError(3)",
    "key": "{}['layer.3']",
    "loader": "list(torch.utils.data.DataLoader(Images(), num_workers=1))",
    "socket": "raise ConnectionError('no route')",
}
if len(sys.argv) == 1:
    store = tempfile.mktemp()
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    ranks = [subprocess.Popen([sys.executable, __file__, store], env={**env, "RANK": str(rank)})
             for rank in range(len(RAISES))]
    sys.exit(max(rank.wait() for rank in ranks))

import torch, torch.distributed as dist

class ConfigError(Exception):
    def __init__(self, key, value):
        super().__init__(key, value)
    def __str__(self):
        print("ASKED")
        return "bad value"

class Images(torch.utils.data.Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, index):
        raise KeyError("no image 40")  # WORKER

rank = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=rank, world_size=len(RAISES))
dist.all_reduce(torch.ones(2))
dist.destroy_process_group()
sys.excepthook = lambda *told: None  # Python's own asks ConfigError what it says
exec(compile(list(RAISES.values())[rank], "train.py", "exec"))
"""
LINE = next(number for number, text in enumerate(PROGRAM.splitlines(), 1) if text.endswith("# WORKER"))

TOLD = [
    "FileNotFoundError: [Errno 2] No such file or directory: '/nonexistent/data.bin'",
    "FileNotFoundError: [Errno 2] No such file or directory: '/nonexistent/a' -> '/nonexistent/b'",
    "ConfigError('lr', 3)",
    "RuntimeError: ConfigError('lr', [1.5, None, True])",
    "ValueError: ('bad value', 3)",
    "ValueError: 3",
    "KeyError: 'layer.3'",
    "KeyError: Caught KeyError in DataLoader worker process 0: "
    f"KeyError: 'no image 40' (program.py:{LINE} in __getitem__)",
    "ConnectionError: no route",
]


@pytest.fixture(scope="module")
def job(devsan, python, tmp_path_factory):
    scratch = tmp_path_factory.mktemp("messages")
    (scratch / "program.py").write_text(PROGRAM)
    env = Runner(devsan, python, scratch).environment()
    done = subprocess.run([devsan, "run", "--out", scratch / "out", "--", python, "program.py"], env=env, cwd=scratch,
                          capture_output=True, text=True, timeout=300)
    return done, scratch / "out"


def test_an_exception_is_told_as_python_does_without_running_the_programs_code(job):
    done, out = job
    notes = {int(note.name.split(".")[1].removeprefix("rank")): note.read_text().split(" ", 4)[4]
             for note in out.glob("failed.rank*")}
    assert [notes.get(rank) for rank in range(len(TOLD))] == TOLD
    assert "ASKED" not in done.stdout


def test_the_report_tells_the_same(job, devsan):
    _, out = job
    first = view(devsan, out)["run"]["first_failure"]
    assert first["what"].removeprefix("raised ") == TOLD[first["rank"]]
