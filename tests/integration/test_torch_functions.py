"""The functions of torch's that the hooks stand in front of, by the symbols of the libraries themselves."""

import subprocess

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
    wanted = {name for name, kind in symbols(hooks, "--undefined-only").items() if kind == "w" and name.startswith("_ZN")}
    assert len(wanted) >= 20
    defined = set().union(*(symbols(path, "--defined-only") for path in libraries if "/torch/lib/" in path))
    assert not wanted - defined
