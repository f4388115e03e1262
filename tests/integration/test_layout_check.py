"""Hooks that were compiled for another layout of tensors than the torch at hand has."""

import os
import subprocess

import pytest

from harness import LEAKING
from installations import torch_of

PROGRAM = """
import torch
print(torch.ones(2, 3).sum().item())
"""
# Two fields of one size change places: nothing but a look at a tensor can tell.
FIELDS = ("  int64_t storage_offset_ = 0;\n", "  int64_t numel_ = 1;\n")


def other_torch(real, folder):
    """A package that is the real one but for one header. devsan takes it for the same build, by libtorch's build-id."""
    package = folder / "torch"
    package.mkdir(parents=True)
    subprocess.run(["cp", "-as", real / "include", package], check=True)
    for name in ("lib", "__init__.py", "version.py"):
        (package / name).symlink_to(real / name)
    header = package / "include/c10/core/TensorImpl.h"
    text = header.read_text()
    assert all(text.count(field) == 1 for field in FIELDS)
    first, second = FIELDS
    header.unlink()
    header.write_text(text.replace(first, "@").replace(second, first).replace("@", second))


@pytest.mark.slow
def test_hooks_for_another_layout_say_so_in_one_line_and_the_program_runs_as_without(devsan, python, tmp_path):
    other_torch(torch_of(python), tmp_path / "other")
    environment = {key: value for key, value in os.environ.items() if key not in LEAKING}
    environment["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    built = subprocess.run([devsan, "build", "--quiet", "--python", python], capture_output=True, text=True, check=False,
                           env={**environment, "PYTHONPATH": str(tmp_path / "other")})
    assert built.returncode == 0, built.stderr

    run = subprocess.run([devsan, "run", "--out", tmp_path / "out", "--", python, "-c", PROGRAM], capture_output=True, text=True,
                         env=environment, check=False)
    assert (run.returncode, run.stdout) == (0, "6.0\n")
    assert run.stderr.splitlines()[0] == "devsan: these hooks do not fit this torch: they misread the storage of a tensor"
    assert "Traceback" not in run.stderr
