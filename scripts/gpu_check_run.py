"""What every part of scripts/gpu_check uses: commands with a deadline, and the rows of the table."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOLD = 4000  # characters of each output that go to the log: hundreds of processes leave a file that can be carried home
LEFT_OUT = "left out"


class Step(NamedTuple):
    """`run(check)` returns whether all is well, and the result for the table. Less than `least` seconds before the end the
    step is left out."""

    name: str
    run: object
    least: float = 5


class Check:
    """The folders, the time that is left, and the rows of the table. `out` is what is carried home, `work` is not."""

    def __init__(self, options):
        self.options = options
        self.out = options.out.resolve()
        self.work = options.work.resolve()
        for folder in (self.out, self.work):
            folder.mkdir(parents=True, exist_ok=True)
        self.devsan = pathlib.Path(options.devsan) if options.devsan else self.work / "prefix/bin/devsan"
        self.began = time.monotonic()
        self.deadline = self.began + options.minutes * 60
        self.results = {"machine": {}, "steps": [], "programs": []}
        self.log = self.out / "log.txt"
        self.log.write_text("")
        self.one_at_a_time = threading.Lock()

    # ---- time

    def left(self):
        return self.deadline - time.monotonic()

    def bounded(self, most):
        return max(1.0, min(most, self.left()))

    # ---- processes

    def environment(self, **more):
        # An installed devsan has its hooks in the user's cache; the one that is made here leaves none there.
        cache = {} if self.options.devsan else {"XDG_CACHE_HOME": str(self.work / "cache")}
        return {**os.environ, **cache, "PYTHONDONTWRITEBYTECODE": "1",
                **{name: str(value) for name, value in more.items()}}

    def run(self, command, most, **how):
        """A finished process; one that ran out of time, or could not start, has status 124 or 127."""
        command = [str(part) for part in command]
        try:
            # A group of its own: what a command started ends with it when the time is over.
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True, errors="replace", start_new_session=True, **{"cwd": ROOT, **how})
        except OSError as error:
            done = subprocess.CompletedProcess(command, 127, "", f"{error}\n")
        else:
            done = finished(process, self.bounded(most))
        with self.one_at_a_time, self.log.open("a") as log:
            log.write(f"$ {' '.join(command)}\n{done.stdout[-TOLD:]}{done.stderr[-TOLD:]}[status {done.returncode}]\n")
        return done

    def plain(self, *command):
        """A command that runs without devsan. In a rehearsal there are no devices without it, so both sides have it."""
        return self.traced(self.work / "traces/plain", *command) if self.options.sim else [self.options.python, *command]

    def traced(self, out, *command):
        simulated = ["--sim", self.options.sim] if self.options.sim else []
        return [self.devsan, "run", *simulated, "--quiet", "--out", out, "--", self.options.python, *command]

    def report(self, *paths):
        """What `devsan view` tells of traces; None when it tells nothing."""
        done = self.run([self.devsan, "view", *paths, "--json", self.work / f"report{threading.get_ident()}.json"], 60)
        if done.returncode:
            return None
        return json.loads((self.work / f"report{threading.get_ident()}.json").read_text())

    # ---- the table

    def say(self, text):
        with self.one_at_a_time:
            print(f"{time.monotonic() - self.began:6.1f} s  {text}", flush=True)

    def tell(self, name, verdict, seconds, words):
        """One row: `verdict` is ok, FAIL or left out."""
        self.results["steps"].append({"name": name, "verdict": verdict, "seconds": round(seconds, 1), "result": words})
        self.say(f"{verdict:8}  {name}: {words}")

    def step(self, step):
        """Runs a step, unless the time does not suffice. False when it failed."""
        if self.left() < step.least:
            self.tell(step.name, LEFT_OUT, 0, f"{max(0, self.left()):.0f} s are left, and it needs {step.least:g} s")
            return True
        began = time.monotonic()
        try:
            good, words = step.run(self)
        except Exception as error:
            good, words = False, f"{type(error).__name__}: {error}"
        self.tell(step.name, "ok" if good else "FAIL", time.monotonic() - began, words)
        return good


def finished(process, seconds):
    try:
        out, err = process.communicate(timeout=seconds)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        return subprocess.CompletedProcess(process.args, 124, out, err + "\nran out of time\n")


def first_error(text):
    lines = [line for line in text.splitlines() if "rror" in line] or text.strip().splitlines() or ["no message"]
    return lines[0]


def last_line(text):
    return (text.strip().splitlines() or ["no output"])[-1]


def describe_machine(check):
    """What the results are of. The driver tells its version where its tools or the kernel do."""
    code = ("import json, platform, torch; c = torch.cuda; print(json.dumps({'torch': torch.__version__, "
            "'cuda': torch.version.cuda, 'python': platform.python_version(), 'gpus': c.device_count(), "
            "'gpu': c.get_device_name(0) if c.is_available() else None}))")
    done = check.run(check.traced(check.work / "traces/machine", "-c", code) if check.options.sim
                     else [check.options.python, "-c", code], 120, env=check.environment())
    if done.returncode:
        return False, first_error(done.stderr)
    machine = json.loads(last_line(done.stdout))
    machine |= {"date": time.strftime("%Y-%m-%d"), "cpus": len(os.sched_getaffinity(0)), "kernel": os.uname().release,
                "driver": driver_version(check), "simulated": bool(check.options.sim)}
    check.results["machine"] = machine
    words = f"torch {machine['torch']}, Python {machine['python']}, {machine['gpus']} x {machine['gpu']}"
    return machine["gpus"] > 0, words


def driver_version(check):
    done = check.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], 20)
    if done.returncode == 0:
        return done.stdout.strip().splitlines()[0]
    told = pathlib.Path("/proc/driver/nvidia/version")
    return next((word for word in told.read_text().split() if word.count(".") >= 1), None) if told.exists() else None


def python_has(check, package):
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({package!r}) is None)"
    return check.run([check.options.python, "-c", code], 30).returncode == 0


if __name__ == "__main__":
    sys.exit("this file is a part of scripts/gpu_check")
