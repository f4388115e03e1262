"""Signals, stops and ends go between `devsan run`, its command and the terminal as if devsan were not there."""

import os
import select
import signal
import subprocess
import sys

import pytest

from harness import LEAKING
from terminal import Terminal

# Says each signal that it gets; ends with 7 at SIGUSR2. It waits at a pipe that every signal writes to: pause() would
# sleep through one that comes right before it.
LISTENER = """
import os, signal
arrivals, wakeup = os.pipe()
os.set_blocking(wakeup, False)
signal.set_wakeup_fd(wakeup)
def told(number, frame):
    os.write(1, signal.Signals(number).name.encode() + b"\\n")
    if number == signal.SIGUSR2:
        os._exit(7)
for name in ("INT", "TERM", "HUP", "QUIT", "USR1", "USR2", "WINCH", "CONT", "ALRM"):
    signal.signal(getattr(signal, "SIG" + name), told)
os.write(1, b"ready %d\\n" % os.getpid())
while True:
    os.read(arrivals, 1)
"""
LISTEN = [sys.executable, "-S", "-c", LISTENER]


@pytest.fixture
def environment(tmp_path):
    clean = {key: value for key, value in os.environ.items() if key not in LEAKING}
    return {**clean, "DEVSAN_OPTIONS": f"hooks={tmp_path}", "TERM": "dumb", "PS1": "$ ", "ENV": ""}


@pytest.fixture
def started(devsan, environment, tmp_path):
    """devsan with a listener in it, ready: the process and the listener's pid."""
    processes = []

    def start(**options):
        process = subprocess.Popen([devsan, "run", "--", *LISTEN], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   env=environment, cwd=tmp_path, text=True, **options)
        processes.append(process)
        return process, int(process.stdout.readline().split()[1])

    yield start
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGWINCH", "SIGALRM", "SIGCONT"])
def test_signal_sent_to_devsan_reaches_the_command_once(started, name):
    process, _ = started()
    process.send_signal(getattr(signal, name))
    assert process.stdout.readline().strip() == name
    process.send_signal(signal.SIGUSR2)  # comes after whatever was forwarded before it
    assert process.stdout.read().split() == ["SIGUSR2"]
    assert process.wait(60) == 7


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGUSR1"])
def test_signal_sent_to_the_group_reaches_the_command_once(started, name):
    process, _ = started(start_new_session=True)
    for _ in range(5):
        os.killpg(process.pid, getattr(signal, name))
        assert process.stdout.readline().strip() == name
    process.send_signal(signal.SIGUSR2)
    assert process.stdout.read().split() == ["SIGUSR2"]
    assert process.wait(60) == 7


def test_signal_that_the_command_does_not_handle_ends_it(devsan, environment, tmp_path):
    process = subprocess.Popen([devsan, "run", "--", "sh", "-c", "echo ready; exec sleep 1000"], cwd=tmp_path,
                               stdout=subprocess.PIPE, env=environment)
    process.stdout.readline()
    process.terminate()
    assert process.wait(60) == 128 + signal.SIGTERM


def test_killing_devsan_leaves_no_orphan(started):
    process, listener = started()
    watched = os.pidfd_open(listener)
    process.kill()
    assert select.select([watched], [], [], 60)[0], "the command lives on"
    os.close(watched)
    process.wait()
    assert process.stdout.read() == "", "every other holder of the pipe has ended too"


def test_ctrl_c_reaches_the_command_once(devsan, environment, tmp_path):
    terminal = Terminal([devsan, "run", "--", *LISTEN], environment, tmp_path)
    terminal.expect(b"ready ")
    terminal.type(b"\x03")
    terminal.expect(b"SIGINT")
    os.kill(terminal.pid, signal.SIGUSR2)
    assert b"SIGINT" not in terminal.expect(b"SIGUSR2")
    assert terminal.end() == 7


def test_ctrl_c_ends_a_command_that_does_not_handle_it(devsan, environment, tmp_path):
    terminal = Terminal([devsan, "run", "--", "sh", "-c", "echo ready; exec sleep 1000"], environment, tmp_path)
    terminal.expect(b"ready")
    terminal.type(b"\x03")
    assert terminal.end() == 128 + signal.SIGINT


READER = """
import os, sys
print("ready", os.getpid(), flush=True)
print("got", input(), flush=True)
sys.exit(9)
"""


def test_job_control_of_a_shell_works(devsan, environment, tmp_path):
    program = tmp_path / "reader.py"
    program.write_text(READER)
    shell = Terminal(["sh", "-i", "-m"], environment, tmp_path)
    shell.type(f"'{devsan}' run -- '{sys.executable}' -S reader.py\n".encode())
    shell.expect(b"ready ")
    shell.type(b"\x1a")
    assert shell.expect(b"Stopped") is not None
    shell.type(b"echo in the shell $((6 * 7))\n")
    shell.expect(b"in the shell 42")
    shell.type(b"fg\n")
    shell.type(b"hello\n")
    shell.expect(b"got hello")
    shell.type(b"echo status=$((1000 + $?))\n")
    shell.expect(b"status=1009")
    shell.type(b"exit 0\n")
    assert shell.end() == 0


def test_stop_and_continue_sent_to_devsan_stop_and_continue_the_command(started):
    # A group of its own: the kernel does not let SIGTSTP stop an orphaned one, which that of the tests may be.
    process, listener = started(preexec_fn=os.setpgrp)
    process.send_signal(signal.SIGTSTP)
    assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
    with open(f"/proc/{listener}/stat") as file:
        assert file.read().rpartition(") ")[2][0] == "T"
    process.send_signal(signal.SIGCONT)
    assert process.stdout.readline().strip() == "SIGCONT"
    process.send_signal(signal.SIGUSR2)
    assert process.wait(60) == 7


def test_command_that_is_stopped_by_itself_stops_devsan(devsan, environment, tmp_path):
    process = subprocess.Popen([devsan, "run", "--", "sh", "-c", "kill -STOP $$; exit 5"], env=environment, cwd=tmp_path)
    assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
    process.send_signal(signal.SIGCONT)
    assert process.wait(60) == 5
