"""Starts programs as forks of a process that has imported torch: a zygote, one for each kind of environment.

The program is run by an interpreter that goes on from where its own start would have brought it (see
zygote/sitecustomize.py), and devsan gives a fork a trace of its own. What differs from a start by `devsan run`: nobody
supervises the program, so there is no summary at its end, and an end by a signal leaves no note in the trace; the trace
does not tell the command; and a program without any operator leaves no trace.
"""

import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time

FOLDER = pathlib.Path(__file__).with_name("zygote")

# Any program's path must fit in its place.
PLACEHOLDER = "/" + "x" * 4000


def drain(pipe):
    """What a pipe holds at the moment."""
    parts = []
    try:
        while part := os.read(pipe, 1 << 16):
            parts.append(part)
    except BlockingIOError:
        pass
    return b"".join(parts)


class Zygote:
    """A process that has imported torch, and the pipes to it. It ends when these are closed."""

    def __init__(self, python, env, library=None, options=()):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="devsan-zygote-"))
        self.turn = threading.Lock()
        self.library = library
        self.options = options
        # A process is told at its start where its traces go: to a link, which leads to one program's after the other's.
        self.out = self.folder / "out"
        self.lead_to(self.folder / "own")
        self.start(python, {**env, **self.devsan_environment(self.out)})

    def devsan_environment(self, out):
        if self.library is None:
            return {}
        return {"LD_PRELOAD": self.library, "DEVSAN_OPTIONS": ":".join([f'out="{out}"', *self.options])}

    def lead_to(self, out):
        out.mkdir(mode=0o700, parents=True, exist_ok=True)
        link = self.folder / "next"
        link.symlink_to(out)
        link.rename(self.out)

    def start(self, python, env):
        requests, self.requests = os.pipe()
        self.answers, answers = os.pipe()
        env = {**env, "PYTHONPATH": str(FOLDER), "DEVSAN_ZYGOTE": f"{requests},{answers}"}
        # Programs write into these pipes too: another stderr than that of the start is one that devsan keeps away from.
        process = subprocess.Popen([python, PLACEHOLDER], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=env, cwd=self.folder, pass_fds=(requests, answers))
        os.close(requests)
        os.close(answers)
        self.process = process  # which closes its pipes when it goes
        self.stdout, self.stderr = process.stdout.fileno(), process.stderr.fileno()
        for pipe in (self.answers, self.stdout, self.stderr):
            os.set_blocking(pipe, False)
        _, *self.said_at_start = self.listen(1, timeout=180)

    def end(self):
        os.close(self.requests)
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def listen(self, answers, timeout):
        """Waits for so many lines of answers. These, and what was written to stdout and stderr meanwhile."""
        # In this order: what was written before an answer is there when the answer is.
        heard = {self.answers: b"", self.stdout: b"", self.stderr: b""}
        deadline = time.monotonic() + timeout
        killed = False
        while heard[self.answers].count(b"\n") < answers:
            ready, _, _ = select.select(list(heard), [], [], max(0, deadline - time.monotonic()))
            for pipe in heard:
                news = drain(pipe)
                heard[pipe] += news
                assert news or pipe != self.answers or pipe not in ready, f"no more forks: {heard[self.stderr]}"
            if not ready and not killed:
                killed = True
                deadline += 60
                os.kill(int(heard[self.answers].split()[0]), signal.SIGKILL)
        assert not killed, f"not at its end after {timeout} s: {heard[self.stderr]}"
        return heard.values()

    def run(self, program, args, env, out, cwd, timeout):
        """Runs a program to its end: (exit status or minus the signal, stdout, stderr)"""
        with self.turn:
            if self.library is not None:
                self.lead_to(out)
            request = {"program": str(program), "args": args, "cwd": str(cwd),
                       "env": {**env, **self.devsan_environment(out)}}
            os.write(self.requests, json.dumps(request).encode() + b"\n")
            answers, *written = self.listen(2, timeout)
        status = os.waitstatus_to_exitcode(int(answers.split()[1]))
        return (status, *(before + own for before, own in zip(self.said_at_start, written)))


zygotes = {}


def zygote(python, env, library, options):
    """The one for an environment."""
    key = (python, frozenset(env.items()), library, tuple(options))
    if key not in zygotes:
        zygotes[key] = Zygote(python, env, library, options)
    return zygotes[key]


def end_zygotes():
    while zygotes:
        zygotes.popitem()[1].end()
