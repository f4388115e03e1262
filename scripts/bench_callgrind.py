"""Counts the instructions that devsan adds to an operator, with callgrind, hooks off and on in one process.

Run by itself, under valgrind, this file is the counted program: bench_callgrind.py LIBRARY REPEATS
"""

import collections
import ctypes
import functools
import pathlib
import re
import shutil
import subprocess
import sys
from typing import Iterator, NamedTuple

from bench_workloads import no_garbage_collection, operators, switch, tiny_step

HOOKS = "libdevsan_torch.so"
STEP = "tiny step"
ENTRY = "WrapperEntry::entry"
CENSUS = "visit_live_storages"
ENTRIES = (ENTRY, "Wrapper::WatchedEntry::entry")  # an operator passes one of them at most
OPERATOR = re.compile(r"at::_ops::\w+::call\(")
# How many pieces the C library's allocator merges or splits depends on what was freed rounds ago: some fifty
# instructions an operator more or less, though the hooks allocate nothing while all operands are on one device. A call
# of malloc() by them would still show.
ALLOCATOR = re.compile(r"_int_(malloc|free)|malloc_consolidate|unlink_chunk|sysmalloc|systrim")
ROUNDS = 5  # of the step, off and on in turn: the allocator now and then tidies up for some hundred thousand instructions
WARM_UPS = 10  # until the interpreter has specialised its byte code
EARLY_STEPS = 100  # in which the hooks look at live storages so often that no round would be without
# By itself valgrind puts libraries below 345 MB. libdevsan takes addresses smaller than libtorch_cpu's size for offsets
# of one that is not relocated yet, and leaves it unpatched.
LOWEST_ADDRESS = "--aspace-minaddr=0x100000000"


class Profile(NamedTuple):
    """One dump of callgrind, or the sum of several."""

    total: int
    own: collections.Counter[tuple[str, str]]    # (object, function) -> instructions of its own
    calls: collections.Counter[tuple[str, str]]  # how often it was called

    def plus(self, other: "Profile") -> "Profile":
        return Profile(self.total + other.total, self.own + other.own, self.calls + other.calls)


def read_profile(path: pathlib.Path) -> Profile:
    """Sums a callgrind.out file by function. See the manual, "Callgrind Format Specification"."""
    names: dict[tuple[str, str], str] = {}

    def expand(kind: str, text: str) -> str:
        number, _, name = text.partition(" ")
        if not re.fullmatch(r"\(\d+\)", number):
            return text
        if name:
            names[kind, number] = name
        return names[kind, number]

    own, calls = collections.Counter(), collections.Counter()
    here = callee_object = ""
    at, callee, skip = ("", ""), ("", ""), False
    for line in path.read_text(errors="replace").splitlines():
        key, equals, value = line.partition("=")
        if equals and key == "ob":
            here = expand("ob", value)
        elif equals and key == "fn":
            at, callee_object = (here, expand("fn", value)), here
        elif equals and key == "cob":
            callee_object = expand("ob", value)
        elif equals and key == "cfn":
            callee, callee_object = (callee_object, expand("fn", value)), here
        elif equals and key == "calls":
            calls[callee] += int(value.split()[0])
            skip = True
        elif line[:1] in "0123456789+-*" and line:
            if not skip:
                own[at] += int(line.split()[1])
            skip = False
    return Profile(sum(own.values()), own, calls)


def counted(library: str, repeats: int) -> None:
    """The program that runs under callgrind: prints the name of each dump in their order."""
    import torch

    torch.set_num_threads(1)
    set_enabled = switch()
    helper = ctypes.CDLL(library)
    helper.bench_count_to_here.argtypes = [ctypes.c_char_p]
    works = [(op.name, 1, lambda batch=op.batch: batch(repeats)) for op in operators("cpu")]
    works.append((STEP, ROUNDS, tiny_step("cpu")))
    for name, rounds, work in works:
        for _ in range(EARLY_STEPS if name == STEP else 0):
            work()
        for enabled in (0, 1) * rounds:
            set_enabled(enabled)
            for _ in range(WARM_UPS):
                work()
            with no_garbage_collection():
                helper.bench_instrument()
                work()
                helper.bench_count_from_here()
                work()
                helper.bench_count_to_here(name.encode())
            print(enabled, name, flush=True)


def has_census(profile: Profile) -> bool:
    """Whether the hooks looked at all live storages, which they do when half a thousandth of the time has paid for it:
    as slow as all is under callgrind, one may fall into any step."""
    return any(CENSUS in function for _, function in profile.own)


def total(pairs: list[tuple[Profile, Profile]]) -> dict:
    """The sum of the pairs, off and on, in which no census was taken."""
    kept = [pair for pair in pairs if not any(map(has_census, pair))]
    if not kept:
        raise RuntimeError("the hooks took a census in every counted round")
    off, on = (functools.reduce(Profile.plus, side) for side in zip(*kept))
    return {"off": off, "on": on, "rounds": len(kept)}


def under_callgrind(out: pathlib.Path, *command: object) -> list[str]:
    """The command that runs another one under callgrind, which counts nothing until it is told to."""
    return ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--quiet", LOWEST_ADDRESS,
            f"--callgrind-out-file={out}/dump", *map(str, command)]


def count(python: str, library: pathlib.Path, repeats: int, environment: dict, out: pathlib.Path) -> dict:
    """Runs the counted program. {name: {"off": Profile, "on": Profile, "rounds": int}}, the operators' over `repeats`
    calls."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    command = under_callgrind(out, python, __file__, library, repeats)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        raise RuntimeError(f"the counted program ended with {done.returncode}:\n{done.stderr[-2000:]}")
    dumps: dict = collections.defaultdict(list)
    for number, line in enumerate(done.stdout.splitlines(), start=1):
        dumps[line.split(" ", 1)[1]].append(read_profile(out / f"dump.{number}"))
    return {name: total(list(zip(profiles[::2], profiles[1::2]))) for name, profiles in dumps.items()}


def short(function: str) -> str:
    """A C++ function's name without its arguments or callgrind's mark of recursion; all wrappers are one."""
    function = re.sub(r"'\d+$", "", function)
    if "WrapperEntry<" in function:
        return ENTRY
    wrapper = re.search(r"Wrapper<.*>::((?:WatchedEntry::)?\w+)\(", function)
    if wrapper:
        return "Wrapper::" + wrapper[1]
    function = re.sub(r"devsan::(hooks|trace)::|\(anonymous namespace\)::", "", function)
    return re.sub(r"\(.*", "", function)


def breakdown(off: Profile, on: Profile, operations: int) -> list[tuple[str, float, float]]:
    """(function, instructions added per operation, calls added per operation), the most expensive first. What the hooks
    do even while they are switched off, when a storage dies, is added too."""
    cost, calls = collections.Counter(), collections.Counter()
    for sign, profile in ((1, on), (-1, off)):
        for (library, function), own in profile.own.items():
            if ALLOCATOR.match(function) or (sign < 0 and library.endswith(HOOKS)):
                continue
            place = "" if library.endswith(HOOKS) else " [" + pathlib.Path(library).name.split(".so")[0] + "]"
            cost[short(function) + place] += sign * own
            calls[short(function) + place] += sign * profile.calls.get((library, function), 0)
    rows = [(name, own / operations, calls[name] / operations) for name, own in cost.items()]
    return sorted((row for row in rows if abs(row[1]) >= 0.05), key=lambda row: -row[1])


def wrapper_calls(profile: Profile) -> int:
    """Operators that a wrapper was around, those inside others included."""
    return sum(count for (_, function), count in profile.calls.items() if short(function) in ENTRIES)


def operator_calls(profile: Profile) -> int:
    """Operators that ran, those inside others and those without a wrapper included."""
    return sum(count for (_, function), count in profile.calls.items() if OPERATOR.match(function))


def counting(profile: Profile) -> int:
    return sum(own for (_, function), own in profile.own.items() if not ALLOCATOR.match(function))


def added(off: Profile, on: Profile) -> int:
    """Instructions, without those of ALLOCATOR."""
    always = sum(own for (library, _), own in off.own.items() if library.endswith(HOOKS))
    return counting(on) - counting(off) + always


def outermost_calls(profile: Profile) -> int:
    return sum(count for (_, function), count in profile.calls.items() if "OutermostCall::OutermostCall(" in function)


def figures(profiles: dict, repeats: int) -> Iterator[dict]:
    for name, pair in profiles.items():
        off, on = pair["off"], pair["on"]
        wrapped = wrapper_calls(on)
        if wrapped == 0:
            raise RuntimeError("no wrapper shows in the profile: the hooks have no symbols")
        operators, rounds = operator_calls(on), pair["rounds"]
        if operators < wrapped:
            raise RuntimeError("not all operators show in the profile: libtorch_cpu has no symbols")
        operations = operators if name == STEP else repeats
        yield {"name": name, "instructions_off": off.total, "instructions_on": on.total,
               "operator_calls": operators // rounds, "wrapper_calls": wrapped // rounds,
               "outermost_calls": outermost_calls(on) // rounds, "added_per_op": added(off, on) / operations,
               "added_per_wrapped_op": added(off, on) / wrapped,
               "by_function": [dict(zip(("function", "instructions", "calls"), row))
                               for row in breakdown(off, on, operations)]}


if __name__ == "__main__":
    counted(sys.argv[1], int(sys.argv[2]))
