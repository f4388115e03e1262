"""Installations of devsan with hooks compiled beforehand, and torches that differ from the one at hand by a file."""

import pathlib
import re
import shutil
import subprocess

INDEX_FORMAT = "devsan-hooks 1"


def hooks_of(devsan, python):
    """The folder of hooks that are there for that Python's torch."""
    done = subprocess.run([devsan, "build", "--sim", "--quiet", "--python", python], capture_output=True, text=True, check=True)
    return pathlib.Path(done.stdout.strip())


def torch_of(python):
    """The folder of that Python's torch."""
    code = "import importlib.util; print(importlib.util.find_spec('torch').submodule_search_locations[0])"
    return pathlib.Path(subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip())


def git_version(torch):
    return re.search(r"^git_version = '(\w+)'", (torch / "version.py").read_text(), re.M)[1]


class Installation:
    """A prefix with devsan in it, and a slot for the torch at hand that was copied from the cache."""

    def __init__(self, devsan, python, prefix):
        self.prefix = prefix
        self.devsan = prefix / "bin/devsan"
        self.hooks = prefix / "lib/devsan/hooks"
        self.slot = self.hooks / "some-slot"
        source = devsan.parent.parent
        (prefix / "bin").mkdir(parents=True)
        shutil.copy(devsan, self.devsan)
        self.hooks.mkdir(parents=True)
        shutil.copy(source / "lib/devsan/libdevsan.so", prefix / "lib/devsan")
        (prefix / "share").mkdir()
        (prefix / "share/devsan").symlink_to((source / "share/devsan").resolve())
        self.cached = hooks_of(devsan, python)
        shutil.copytree(self.cached, self.slot)
        # A folder of the cache is called version-sources-buildid.
        self.sources = " ".join(self.cached.name.split("-")[:2])
        self.write_index(git_version(torch_of(python)))

    def write_index(self, commit, abi="cxx11", sources=None):
        text = f"{INDEX_FORMAT} {sources or self.sources}\n{commit} {abi} {self.slot.name}\n"
        (self.hooks / "index").write_text(text)


def torch_with(python, folder, **changes):
    """A torch in `folder` that is the one at hand but for some variables of version.py; for PYTHONPATH."""
    real = torch_of(python)
    made = folder / "torch"
    made.mkdir(parents=True)
    for path in real.iterdir():
        (made / path.name).symlink_to(path)
    text = (real / "version.py").read_text()
    for name, value in changes.items():
        text = re.sub(rf"^{name} = .*$", f"{name} = '{value}'", text, flags=re.M)
    (made / "version.py").unlink()
    (made / "version.py").write_text(text)
    return folder
