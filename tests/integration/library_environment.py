"""Environments with training libraries over the torch at hand: in build/, made once, then used without a network."""

import fcntl
import hashlib
import os
import shutil
import subprocess

from harness import ROOT, Runner

PROGRAMS = ROOT / "tests/integration/library_programs"
NEWEST = ROOT / "tests/integration/library_requirements.txt"
RAY = ROOT / "tests/integration/ray_requirements.txt"
DEEPSPEED_0_14_2 = ROOT / "scripts/demo_requirements.txt"
SETUPTOOLS = "setuptools==84.2.1"


def run(*command, env=None, timeout=1200):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=env, timeout=timeout)
    assert done.returncode == 0, f"{command} ended {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout.strip()


def make_environment(python, requirements):
    """The Python of a virtual environment with `requirements` in a layer of its own over the packages of `python`."""
    facts = run(python, "-c", "import importlib.metadata as m, sys, sysconfig; "
                              "print(sys.version, sysconfig.get_path('purelib'), m.version('torch'), sep='\\n')")
    _, packages, torch = facts.rsplit("\n", 2)
    key = hashlib.sha256((facts + requirements.read_text() + SETUPTOOLS).encode()).hexdigest()[:16]
    folder = ROOT / "build/libraries" / key
    folder.parent.mkdir(parents=True, exist_ok=True)
    layered = folder / "bin/python"
    with open(folder.parent / f"{key}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            run(python, "-m", "venv", folder)
            install(layered, packages, torch, requirements)
            (folder / "complete").touch()
    return layered


def install(layered, packages, torch, requirements):
    own = run(layered, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    with open(os.path.join(own, "devsan_layer.pth"), "w") as layer:
        layer.write(packages + "\n")
    constraint = os.path.join(own, "devsan_torch.txt")
    with open(constraint, "w") as constraints:
        constraints.write(f"torch=={torch}\n")
    pip = (layered, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check")
    run(*pip, SETUPTOOLS)
    run(*pip, "--no-build-isolation", "--constraint", constraint, "--requirement", requirements,
        env={**os.environ, "DS_BUILD_OPS": "0"})


def operators_of_deepspeed(python, *builders):
    """A folder with operators of that Python's DeepSpeed: C++ for a machine without CUDA, compiled once."""
    folder = python.parents[1] / "operators"
    folder.mkdir(exist_ok=True)
    with open(folder / "all.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # What a killed run leaves, the next one waits for without an end.
        for left in folder.glob("*/lock"):
            left.unlink()
        run(python, "-c", "import sys; from deepspeed.ops.op_builder import cpu\n"
                          "for builder in sys.argv[1:]: getattr(cpu, builder)().load()", *builders,
            env={**os.environ, "TORCH_EXTENSIONS_DIR": str(folder), "DS_ACCELERATOR": "cpu"}, timeout=7200)
    return folder


class LibraryRunner(Runner):
    """Runs one of library_programs/, here on the CPU or under devsan on simulated devices, on one rank or several."""

    # One thread: with more, sums are made in another order, and not in the same one every time.
    SETTINGS = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1",
                "DISABLE_TELEMETRY": "1", "PYTHONPATH": str(ROOT / "scripts")}

    def on_cpu(self, name, *args):
        return self(PROGRAMS / name, "cpu", self.scratch / "cpu", *args, plain=True, env=self.SETTINGS, timeout=600)

    def simulated(self, name, *args, devices=2, ranks=None):
        program = self.program_of_ranks(ranks) if ranks else PROGRAMS / name
        first = [PROGRAMS / name] if ranks else []
        return self(program, *first, "cuda", self.scratch / "cuda", *args, sim=devices, env=self.SETTINGS, timeout=600)

    def program_of_ranks(self, ranks):
        return self.program(f"""
            import sys
            from torch.distributed.run import main
            main(["--standalone", "--nproc-per-node={ranks}", *sys.argv[1:]])
            """)
