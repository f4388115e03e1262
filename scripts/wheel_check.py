"""A part of scripts/wheel: what a wheel must hold before anybody gets it."""

import os
import pathlib
import re
import subprocess
import tempfile
import zipfile

from wheel_tools import GLIBC, RUNTIME, Failure, note, version_of

LIMITS = {"GLIBC": GLIBC, **RUNTIME}
MOST_BYTES = 40_000_000
NEEDED = re.compile(r"\((GLIBC|GLIBCXX|CXXABI)_([0-9.]+)\)\s+(\S+)")


def is_elf(path):
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def needed_versions(library):
    """(family, version, symbol) of all that the library wants of others."""
    listed = subprocess.run(["objdump", "-T", library], capture_output=True, text=True, check=True).stdout
    return [NEEDED.search(line).groups() for line in listed.splitlines() if "*UND*" in line and NEEDED.search(line)]


def check_floor(folder):
    """The highest version that any file asks for, by family. A Failure where a user's system may not have it."""
    highest, wrong = {}, []
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or not is_elf(path):
            continue
        for family, version, symbol in needed_versions(path):
            if version_of(version) > version_of(LIMITS[family]):
                wrong.append(f"{path.relative_to(folder)} needs {symbol} of {family}_{version}")
            highest[family] = max(highest.get(family, "0"), version, key=version_of)
    if wrong:
        raise Failure(f"the floor is {LIMITS}, and\n  " + "\n  ".join(wrong))
    return highest


def check_tag(tools, wheel, scratch):
    """auditwheel finds that the wheel fits its tag, apart from torch's libraries, which are the user's own."""
    tag = wheel.stem.split("-", 4)[-1]
    command = [tools.python, "-m", "auditwheel", "repair", "--plat", tag, "--exclude", "libtorch*.so", "--exclude", "libc10.so",
               "--wheel-dir", scratch, wheel]
    environment = {**os.environ, "PATH": f"{tools.python.parent}:{os.environ['PATH']}"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    made = [path.name for path in scratch.glob("*.whl")]
    if done.returncode != 0 or made != [wheel.name]:
        raise Failure(f"auditwheel does not take {wheel.name} for {tag}, but for {made}:\n{done.stderr}")
    return tag


def check_dependencies(folder):
    metadata = next(folder.glob("*.dist-info/METADATA")).read_text()
    if "\nRequires-Dist:" in metadata:
        raise Failure("the wheel has dependencies: pip could replace a torch")


def check(tools, wheel, slots):
    size = wheel.stat().st_size
    if size > MOST_BYTES:
        raise Failure(f"{wheel.name} has {size / 1e6:.1f} MB, more than {MOST_BYTES / 1e6:.0f}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
            unpacked = sum(entry.file_size for entry in archive.infolist())
        check_dependencies(folder)
        highest = check_floor(folder)
    with tempfile.TemporaryDirectory() as scratch:
        tag = check_tag(tools, wheel, pathlib.Path(scratch))
    note(f"{wheel}: {size / 1e6:.1f} MB, {unpacked / 1e6:.1f} MB installed, {len(slots)} slots for "
         f"{sum(len(slot.torches) for slot in slots)} builds of torch")
    note("Floor: " + ", ".join(f"{family} {version}" for family, version in sorted(highest.items())))
    note(f"auditwheel: {tag}")
