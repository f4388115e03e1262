"""The functions of torch's that the hooks stand in front of, by the symbols of the libraries themselves."""

import subprocess

from harness import ROOT

LOADED = """
    import torch
    paths = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
    print(*sorted(path for path in paths if "/torch/lib/" in path or "libdevsan" in path), sep="\\n")
"""


def symbols(path, *options):
    """Names with the letters of their kinds, of which a weak one that is not defined has a w."""
    listing = subprocess.run(["nm", "-D", *options, path], capture_output=True, text=True, check=True).stdout
    return {fields[-1].split("@")[0]: fields[-2] for fields in map(str.split, listing.splitlines())}


def test_each_function_that_the_hooks_replace_is_one_of_torchs(run_python):
    """A name that torch does not define is a hook that is never called, and nothing else says so."""
    libraries = run_python(LOADED, start=True).stdout.split()
    [hooks] = [path for path in libraries if path.endswith("libdevsan_torch.so")]
    wanted = {name for name, kind in symbols(hooks, "--undefined-only").items() if kind == "w" and name.startswith("_Z")}
    assert len(wanted) >= 20
    defined = set().union(*(symbols(path, "--defined-only") for path in libraries if "/torch/lib/" in path))
    assert not wanted - defined


# The words of the virtual table that lie in the hooks.
OWN_ENTRIES = """
    import ctypes, torch
    table = (ctypes.c_void_p * 80).in_dll(ctypes.CDLL("libtorch_cpu.so"), "_ZTVN4c10d12ProcessGroupE")
    maps = [line.split() for line in open("/proc/self/maps") if "libdevsan_torch.so" in line]
    ranges = [tuple(int(end, 16) for end in fields[0].split("-")) for fields in maps]
    print(sum(any(begin <= (word or 0) < end for begin, end in ranges) for word in table))
"""


def test_each_function_of_a_process_group_that_enters_a_collective_is_seen_with_its_types(run_python):
    """A function that is missing would be recorded as well, at the dispatcher, for six times the price."""
    listed = (ROOT / "hooks/torch_bridge/group_functions.def").read_text().count("\nDEVSAN_GROUP_FUNCTION(")
    found = int(run_python(OWN_ENTRIES, start=True).stdout)
    assert listed >= 19 and found in (listed - 1, listed)  # gather_single() came with torch 2.14
