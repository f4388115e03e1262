"""`torchrun --logs-specs=devsan` on two ranks."""

import json
import subprocess

import pytest

from harness import Runner

WORKER = r"""
import json, os
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.ones(2)
dist.all_reduce(total)
preloaded = any("libdevsan.so" in line for line in open("/proc/self/maps"))
# Written in one piece: both ranks share the pipe.
os.write(1, json.dumps([dist.get_rank(), total.tolist(), preloaded, os.environ.get("LD_PRELOAD", "")]).encode() + b"\n")
dist.destroy_process_group()
"""


@pytest.fixture
def torchrun(devsan, python, tmp_path):
    """Runs the worker by the torchrun of that Python, in which the package devsan must be installed."""
    probe = subprocess.run([python, "-c", "import devsan"], capture_output=True)
    assert probe.returncode == 0, "the Python package is not there: run scripts/setup first"
    worker = tmp_path / "worker.py"
    worker.write_text(WORKER)

    def run(*options, env=None):
        environment = Runner(devsan, python, tmp_path).environment({"OMP_NUM_THREADS": "1", **(env or {})})
        return subprocess.run([python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", *options,
                               worker], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=180)

    return run


def reports(done):
    assert done.returncode == 0, done.stderr
    return sorted(json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))


def test_every_worker_is_traced_into_one_directory(torchrun, tmp_path):
    workers = reports(torchrun("--logs-specs=devsan"))
    assert [(rank, total, preloaded) for rank, total, preloaded, _ in workers] == [
        (0, [2.0, 2.0], True), (1, [2.0, 2.0], True)]
    directories = list((tmp_path / "devsan-out").iterdir())
    assert len(directories) == 1
    assert sorted(file.name.split(".")[0] for file in directories[0].glob("*.devsan")) == ["rank0", "rank1"]


def test_existing_preload_and_options_are_kept(torchrun, tmp_path):
    out = tmp_path / "chosen"
    done = torchrun("--logs-specs=devsan", env={"LD_PRELOAD": "libm.so.6", "DEVSAN_OPTIONS": f"out={out}"})
    for _, _, preloaded, preload in reports(done):
        assert preloaded and preload.endswith("libdevsan.so:libm.so.6")
    assert len(list(out.glob("rank*.devsan"))) == 2 and not (tmp_path / "devsan-out").exists()


def test_without_the_flag_nothing_changes(torchrun, tmp_path):
    assert [preload for _, _, _, preload in reports(torchrun())] == ["", ""]
    assert not (tmp_path / "devsan-out").exists()
