"""An installation works wherever it is put, also under a name that LD_PRELOAD cannot carry."""

import shutil
import subprocess

import pytest

from harness import Runner

MEETS = """
    import torch
    print(torch.cuda.device_count())
    torch.ones(3, device="cuda:1") + torch.ones(3)
"""


def test_what_is_installed_carries_nothing_for_debuggers_and_the_library_what_hooks_link_with(devsan):
    library = devsan.parent.parent / "lib/devsan/libdevsan.so"
    for file in (devsan, library):
        sections = subprocess.run(["readelf", "-SW", file], capture_output=True, text=True, check=True).stdout
        assert ".text" in sections and ".symtab" not in sections and ".debug_info" not in sections
    symbols = subprocess.run(["readelf", "-W", "--dyn-syms", library], capture_output=True, text=True, check=True).stdout
    assert " devsan_" in symbols


@pytest.mark.parametrize("name", ["a place with spaces", "one:two", "price$HOME"])
@pytest.mark.parametrize("preload", [False, True], ids=["devsan run", "preload"])
def test_installation_can_be_moved_anywhere(devsan, python, tmp_path, name, preload):
    prefix = tmp_path / name
    for part in ("lib/devsan", "share/devsan"):
        shutil.copytree(devsan.parent.parent / part, prefix / part, symlinks=True)
    (prefix / "bin").mkdir()
    shutil.copy(devsan, prefix / "bin/devsan")
    result = Runner(prefix / "bin/devsan", python, tmp_path)(MEETS, sim=2, preload=preload)
    assert result.stdout == "2\n", result.stderr
    assert len(result.raised()) == 1
