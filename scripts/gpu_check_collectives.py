"""Whether NCCL's collectives are recorded, for scripts/gpu_check: names, numbers, sizes, lines, and that each has ended."""

import sys

from gpu_check_device import GPU_PROGRAMS, what_is_told, with_driver_log
from gpu_check_run import last_line

PROGRAM = GPU_PROGRAMS / "collectives.py"
# What the program enters, in its order: name, number in its group, bytes, dtype.
EXPECTED = [
    ("all_reduce", 1, 4096, "float32"),
    ("broadcast", 2, 4096, "float32"),
    ("all_gather_into_tensor", 3, 4096, "float32"),
    ("reduce_scatter_tensor", 4, 4096, "float32"),
    ("all_gather", 5, 4096, "float32"),
    ("all_to_all_single", 6, 4096, "float32"),
    ("reduce", 7, 4096, "float32"),
    ("all_reduce", 1, 2048, "float16"),
    ("all_reduce", 8, 4096, "float32"),
    ("all_reduce", 9, 4096, "float32"),
]
# The one behind a kernel that keeps the device busy: the host has come back from it long before it ends.
LATE, LATE_NS = 8, 50_000_000


def entered(report):
    """The program's own collectives, oldest first."""
    processes = [p for p in (report or {"run": {"processes": []}})["run"]["processes"] if "collectives" in p]
    calls = [call for process in processes for call in reversed(process["collectives"]["last"])]
    return [call for call in calls if (call["where"] or {}).get("file") == str(PROGRAM)]


def wrong_in(calls):
    """What of the recorded calls is not as it should be, in words."""
    compared = [(c["name"], c["sequence"], c["bytes"], c["dtype"]) for c in calls if c["name"] != "barrier"]
    words = [f"recorded {told}, expected {wanted}" for told, wanted in zip(compared, EXPECTED) if told != wanted]
    if len(compared) != len(EXPECTED):
        words.append(f"{len(compared)} recorded, {len(EXPECTED)} expected")
    if [c["sequence"] for c in calls if c["name"] == "barrier"] != [10]:
        words.append("the barrier is not number 10")
    unfinished = [f"{c['name']} {c['sequence']} is {c['state']}" for c in calls
                  if c["state"] != "finished" or not c["end_told"] or c["finished_ns"] < c["entered_ns"]]
    took = [c["finished_ns"] - c["entered_ns"] for c in calls if (c["sequence"], c["bytes"]) == (LATE, 4096)]
    if took and took[0] < LATE_NS:
        words.append(f"all_reduce {LATE} ended {took[0]} ns after it was entered, before the device did")
    devices = {c["device"] for c in calls}
    return words + unfinished + ([f"devices {sorted(map(str, devices))}"] if devices != {"cuda:0"} else [])


def check_recorded(check):
    """The program does the same with devsan, and what it entered is in its trace."""
    command = "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 1, PROGRAM
    good, words, plain, _, out = with_driver_log(check, "recorded", 90, *command)
    if plain.returncode:
        words = [f"without devsan status {plain.returncode}: {last_line(plain.stderr)}"]
    calls = entered(check.report(out))
    wrong = wrong_in(calls) + what_is_told(check, out)
    ended = sum(call["state"] == "finished" for call in calls)
    return good and not wrong, "; ".join([f"{ended} of {len(EXPECTED) + 1} recorded to their end", *words, *wrong[:4]])


if __name__ == "__main__":
    sys.exit("this file is a part of scripts/gpu_check")
