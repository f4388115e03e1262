"""An installation works wherever it is put, also under a name that LD_PRELOAD cannot carry."""

import shutil

import pytest

from harness import Runner

MEETS = """
    import torch
    print(torch.cuda.device_count())
    torch.ones(3, device="cuda:1") + torch.ones(3)
"""


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
