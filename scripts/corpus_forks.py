"""Runs programs, each in a process forked from this one, which has imported torch and not used CUDA: what a GPU's
machine takes longest for is importing torch.

    corpus_forks.py JOBS SECONDS FOLDER PROGRAM…

Prints a line of JSON for each program when it has ended: `program`, `pid`, `status` as Popen tells it (None: its time was
over), `seconds`. What it wrote is in FOLDER, in <program>.out and .err. A program is `__main__` there, and an exception
leaves it as it leaves any other; its traceback has one frame more, that of this file.
"""

import json
import os
import pathlib
import random
import signal
import sys
import time
import types

import torch

PROGRAM_SECONDS = 60


def serve(programs, jobs, seconds, folder):
    """In the parent None, when all have ended; in a forked process the program that it is to run."""
    waiting, running, over = list(programs), {}, time.monotonic() + seconds
    while running or (waiting and time.monotonic() < over):
        while waiting and len(running) < jobs and time.monotonic() < over:
            path = waiting.pop(0)
            pid = os.fork()
            if pid == 0:
                redirect(folder / path.name)
                return path
            running[pid] = (path, time.monotonic())
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid in running:
            path, began = running.pop(pid)
            tell(path, pid, os.waitstatus_to_exitcode(status), began)
        elif pid == 0:
            end_late_ones(running, over)
            time.sleep(0.02)
    return None


def redirect(name):
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, suffix in ((1, ".out"), (2, ".err")):
        os.dup2(os.open(f"{name}{suffix}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)


def end_late_ones(running, over):
    now = time.monotonic()
    for pid, (path, began) in list(running.items()):
        if now > over or now > began + PROGRAM_SECONDS:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            del running[pid]
            tell(path, pid, None, began)


def tell(path, pid, status, began):
    line = {"program": path.name, "pid": pid, "status": status, "seconds": round(time.monotonic() - began, 2)}
    print(json.dumps(line), flush=True)


def become(path):
    """Makes this process one that was started to run a program; gives its code and where it runs."""
    module = types.ModuleType("__main__")
    module.__file__ = str(path)
    sys.modules["__main__"] = module
    sys.argv, sys.path[0] = [str(path)], str(path.parent)
    return compile(path.read_text(), str(path), "exec"), module.__dict__


# Both would be seeded by chance, and programs print what they computed.
random.seed(0)
torch.random.default_generator.manual_seed(0)
jobs, seconds, folder, *names = sys.argv[1:]
mine = serve(list(map(pathlib.Path, names)), int(jobs), float(seconds), pathlib.Path(folder))
if mine:
    exec(*become(mine))
