"""Runs a worker script in several processes, each over its share of PyTorch's operators, and goes on behind whatever
ended or stopped one of them.

A worker takes `--shard I/N` and `--start PLACE`. Its standard output is lines of JSON: `{"begins": {…, "resume": PLACE}}`
before anything that may end the process, where PLACE leads behind it, and any other object as a result, which completes
what had begun. It ends with 0 when all of its share is done; with anything else it is started again at the last PLACE.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

# A process imports torch and PyTorch's lists before its first line.
START_SECONDS = 600


def listed_exceptions(path, release=None):
    """{(operator, variant): set of values}, from lines `operator | variant | values | reason`; a value with `?` need not
    be met every time. A reason that begins with `before X.Y:` or `since X.Y:` is one of such releases of torch alone;
    `release` is that at hand, as a tuple of numbers."""
    listed = {}
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            operator, variant, values, reason = (part.strip() for part in line.split("|", 3))
            assert reason and (operator, variant) not in listed, line
            if applies_to(reason, release):
                listed[operator, variant] = {name for value in values.split() for name in (value, value.rstrip("?"))}
    return listed


def applies_to(reason, release):
    bound = re.match(r"(before|since) (\d+)\.(\d+):", reason)
    if bound is None:
        return True
    return (release >= (int(bound[2]), int(bound[3]))) == (bound[1] == "since")


def unlisted(found, listed):
    """Of {(operator, variant): {value: what differed}}, what is no listed exception."""
    return [f"not listed: {op} | {variant} | {value} | {difference}" for (op, variant), values in sorted(found.items())
            for value, difference in sorted(values.items()) if value not in listed.get((op, variant), ())]


def stale(found, listed, compared):
    """Listed, among what `compared(operator, variant)` says was compared, and equal now."""
    def steady(values):
        return {value for value in values if not value.endswith("?") and value + "?" not in values}

    return [f"listed, but equal now: {op} | {variant} | {value}" for (op, variant), values in sorted(listed.items())
            for value in sorted(steady(values) & compared(op, variant) - set(found.get((op, variant), ())))]


class Attempt:
    """One process of a worker. `ended` is its exit status, or words where it was ended from here."""

    def __init__(self, command, environment, take):
        self.command = list(map(str, command))
        self.environment = environment
        self.take = take

    def run(self, silence, is_over):
        with tempfile.TemporaryFile() as errors:
            # A group of its own: `devsan run` has the worker as its child.
            process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
                                       env=self.environment, start_new_session=True)
            try:
                self.ended = self.read(process, silence, is_over)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                process.stdout.close()
            errors.seek(0)
            self.errors = errors.read()[-2000:].decode(errors="replace")

    def read(self, process, silence, is_over):
        """Takes lines until the process ends; its status, or why it was not waited for."""
        rest, patience, heard = b"", START_SECONDS, time.monotonic()
        while True:
            over = is_over()  # what was said until then is still taken
            if select.select([process.stdout], [], [], 0 if over else 1)[0]:
                data = os.read(process.stdout.fileno(), 1 << 16)
                if not data:
                    return status_of(process)
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    if line.startswith(b"{"):
                        self.take(json.loads(line))
                        patience, heard = silence, time.monotonic()
            elif over:
                return "the time was over"
            elif patience and time.monotonic() - heard > patience:
                return f"no answer in {patience:g} s"


def status_of(process):
    try:
        return process.wait(START_SECONDS)
    except subprocess.TimeoutExpired:
        return "it did not end"


class Workers:
    """`command(index, attempt)` is the beginning of a process's command line; `lost(begun, ended)` makes a result of what
    a process did not survive. `silence` is the number of seconds in which something must come from a process, `deadline`
    the time.monotonic() at which processes are ended."""

    def __init__(self, command, lost, silence=None, deadline=float("inf"), environment=None):
        self.command = command
        self.lost = lost
        self.silence = silence
        self.deadline = deadline
        self.environment = environment
        self.stopped = []  # why a share was not worked through to its end

    def is_over(self):
        return time.monotonic() >= self.deadline

    def run(self, jobs, shards, arguments):
        """The results of all shares, those of one share in their order."""
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            try:
                shares = pool.map(lambda i: self.share(f"{i}/{shards}", i, arguments), range(shards))
                return [line for lines in shares for line in lines]
            except BaseException:
                self.deadline = 0  # the pool waits for its threads, and these for their processes
                raise

    def share(self, shard, index, arguments):
        results, start, begun, number, idle = [], "0", None, 0, 0

        def take(told):
            nonlocal start, begun
            begun = told.get("begins")
            if begun is None:
                results.append(told)
            else:
                start = begun["resume"]

        while True:
            number, begun, before = number + 1, None, start
            attempt = Attempt([*self.command(index, number), "--shard", shard, "--start", start, *arguments],
                              self.environment, take)
            attempt.run(self.silence, self.is_over)
            if attempt.ended == 0:
                return results
            if self.is_over():
                self.stopped.append("the time was over")
                return results
            idle = idle + 1 if start == before else 0
            if idle == 2:
                self.stopped.append(f"a worker could not run ({words_for(attempt.ended)}):\n{attempt.errors}")
                return results
            if begun is not None:
                results.append(self.lost(begun, attempt.ended))


def simulated(options, devices, scratch, worker):
    """Commands for Workers that run `worker` on simulated devices."""
    def command(index, attempt):
        return [options.devsan, "run", "--sim", devices, "--quiet", "--out", scratch / f"traces{index}.{attempt}", "--",
                options.python, worker]

    return command


def words_for(ended):
    """An exit status, as Popen or a shell tells it, or words, in words."""
    if isinstance(ended, str):
        return ended
    number = -ended if ended < 0 else ended - 128
    if number in {member.value for member in signal.Signals}:
        return signal.Signals(number).name
    return f"status {ended}"


def default_python(root):
    """That of the checkout; on a machine where nothing was set up, the one that runs the script."""
    own = root / ".venv/bin/python"
    return own if own.exists() else pathlib.Path(sys.executable)
