"""A part of scripts/wheel: hooks and simulation for each release of torch, in a slot each, and their index.

The command that goes into the wheel compiles them, as it does on a user's machine."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import time
from typing import NamedTuple

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


def compile_for(root, tools, prefix, torch, source_id):
    """The folder with the libraries for one torch. What lies there already was made from the same sources."""
    made = tools.folder / "hooks" / f"{source_id}-{torch.release.version}-{torch.abi}"
    if (made / HOOKS).exists():
        return made
    note(f"Compiling for torch {torch.release.version}, {torch.abi}")
    compat = make_compat(root, tools)
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


def undefined_names(library):
    listed = subprocess.run(["nm", "-D", "--undefined-only", "--format=posix", library], capture_output=True, text=True, check=True)
    return {line.split()[0].split("@")[0] for line in listed.stdout.splitlines() if line.split()[1] == "U"}


def check_symbols(tools, prefix, torch, folder):
    """All that the libraries need of torch is there. A build that is not at hand cannot be asked."""
    if not torch.exports:
        return
    others = [prefix / "lib/devsan/libdevsan.so", *tools.stubs.glob("*.so.*")]
    for name in ("libstdc++.so.6", "libgcc_s.so.1"):
        found = subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
        others.append(found.stdout.strip())
    known = torch.exports.union(*(wheel_torches.exported_names(library) for library in others))
    for library in sorted(folder.iterdir()):
        missing = undefined_names(library) - known
        if missing:
            raise Failure(f"{library.name} for torch {torch.release.version} needs what that torch has not: "
                          f"{', '.join(sorted(missing)[:5])}")


def source_id(prefix):
    """The version and the digest of the sources, as `devsan --version` says them."""
    version = subprocess.run([prefix / "bin/devsan", "--version"], capture_output=True, text=True, check=True).stdout
    sources = prefix / "share/devsan/src"
    text = hashlib.sha256()
    for path in sorted(sources.rglob("*")):
        if path.is_file():
            text.update(str(path.relative_to(sources)).encode() + path.read_bytes())
    return f"{version.split()[1]}-{text.hexdigest()[:16]}"


def build(root, tools, prefix, releases):
    identity = source_id(prefix)
    slots, by_headers = [], {}
    for release in releases:
        torch = wheel_torches.fetch(tools, release)
        shared = by_headers.get((torch.headers, torch.abi))
        if shared is None:
            folder = compile_for(root, tools, prefix, torch, identity)
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
