"""A part of scripts/wheel: hooks and simulation for each release of torch, in a slot each, and their index.

The command that goes into the wheel compiles them, as it does on a user's machine."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import time
from typing import NamedTuple

import wheel_programs
import wheel_torches
from wheel_tools import Failure, note

HOOKS = "libdevsan_torch.so"
SIMULATION = "libdevsan_sim.so"


class Slot(NamedTuple):
    name: str
    folder: pathlib.Path
    torches: list  # that it is for


def slot_name(torch):
    minor = ".".join(torch.release.version.split(".")[:2])
    return minor if torch.abi == "cxx11" else f"{minor}-{torch.abi}"


def make_compat(root, tools):
    """What is linked into each library for the old glibc."""
    compat = tools.folder / "compat.o"
    tools.run("gcc", "-O2", "-fPIC", "-c", root / "packaging/compat.c", "-o", compat)
    return compat


def key_of(root, tools):
    """Names all that decides how the libraries of one torch come out."""
    builders = [root / "packaging/compat.c", root / "launch/compile.cpp", tools.cxx]
    digest_of_builders = hashlib.sha256(b"".join(path.read_bytes() for path in builders)).hexdigest()
    return "-".join((*wheel_programs.identity(tools), digest_of_builders[:8]))


def compile_for(tools, prefix, torch, compat, key):
    """The folder with the libraries for one torch. What lies there already was made from the same sources."""
    made = tools.folder / "hooks" / f"{key}-{torch.release.version}-{torch.abi}"
    if (made / HOOKS).exists():
        return made
    note(f"Compiling for torch {torch.release.version}, {torch.abi}")
    cache = tools.folder / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    environment = {**os.environ, "CXX": str(tools.cxx), "XDG_CACHE_HOME": str(cache), "PYTHONPATH": str(torch.folder),
                   "DEVSAN_WHEEL_TORCH": str(torch.folder), "DEVSAN_WHEEL_COMPAT": str(compat)}
    began = time.monotonic()
    tools.run(prefix / "bin/devsan", "build", "--sim", "--python", tools.python, env=environment)
    built = next(path.parent for path in cache.glob(f"devsan/*/{HOOKS}"))
    made.parent.mkdir(exist_ok=True)
    shutil.move(built, made)
    shutil.rmtree(cache)
    note(f"  {time.monotonic() - began:.0f} s")
    return made


def digest(folder):
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(folder.iterdir()))).hexdigest()


def check_symbols(tools, prefix, torch, folder):
    """All that the libraries need of torch is there. A build that is not at hand cannot be asked."""
    if not torch.exports:
        return
    others = [prefix / "lib/devsan/libdevsan.so", *tools.stubs.glob("*.so.*")]
    for name in ("libstdc++.so.6", "libgcc_s.so.1"):
        found = subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
        others.append(found.stdout.strip())
    known = torch.exports.union(*(wheel_torches.dynamic_names(library, "--defined-only") for library in others))
    for library in sorted(folder.iterdir()):
        missing = wheel_torches.dynamic_names(library, "--undefined-only", "U") - known
        if missing:
            raise Failure(f"{library.name} for torch {torch.release.version} needs what that torch has not: "
                          f"{', '.join(sorted(missing)[:5])}")


def build(root, tools, prefix, releases):
    key = key_of(root, tools)
    compat = make_compat(root, tools)
    slots, by_headers = [], {}
    for release in releases:
        torch = wheel_torches.fetch(tools, release)
        shared = by_headers.get((torch.headers, torch.abi))
        if shared is None:
            folder = compile_for(tools, prefix, torch, compat, key)
            shared = next((slot for slot in slots if digest(slot.folder) == digest(folder)), None)
        if shared is None:
            name = slot_name(torch)
            name += "" if all(slot.name != name for slot in slots) else f"-{torch.release.version}"
            shared = Slot(name, folder, [])
            slots.append(shared)
        check_symbols(tools, prefix, torch, shared.folder)
        shared.torches.append(torch)
        by_headers[torch.headers, torch.abi] = shared
    return slots
