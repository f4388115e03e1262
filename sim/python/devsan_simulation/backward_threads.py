"""Waits, at exit, for the threads that run the backward pass of each device.

backward() returns as soon as the last gradient is there; the device's thread drops the graph only then, and for that it
may need the GIL. A thread that asks for the GIL of a finalising interpreter is ended where it stands, which aborts the
process. It can happen on hardware too, but there a program is seldom over so soon after its last operator.
"""

import os
import time

TASKS = "/proc/self/task"
POLL_SECONDS = 0.001
LONGEST_WAIT_SECONDS = 2.0


def wait_until_idle():
    """Idle is asleep at two polls in a row: between them the GIL is free for whoever wants it."""
    end = time.monotonic() + LONGEST_WAIT_SECONDS
    idle_polls = 0
    while idle_polls < 2 and time.monotonic() < end:
        states = thread_states()
        if not states:
            return
        idle_polls = idle_polls + 1 if set(states) == {"S"} else 0
        time.sleep(POLL_SECONDS)


def thread_states():
    return [state for state in map(state_of, os.listdir(TASKS)) if state]


def state_of(task):
    """The scheduler's letter for a backward thread; None for any other, and for one that has just ended."""
    try:
        with open(f"{TASKS}/{task}/stat", encoding="ascii", errors="replace") as file:
            name, _, rest = file.read().partition("(")[2].rpartition(")")
    except OSError:
        return None
    return rest.split()[0] if name.startswith("pt_autograd") else None
