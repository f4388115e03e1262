import os
import pathlib
import signal
import zlib

import pytest

import harness
import zygotes
from harness import ROOT, Runner
from library_environment import NEWEST, make_environment


def pytest_configure():
    # A shell's background job ignores some signals, and what is ignored is inherited by every process of a test.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_unconfigure():
    zygotes.end_zygotes()


def pytest_addoption(parser):
    parser.addoption("--one-in", type=int, default=1, metavar="N", help="run one test in so many")
    parser.addoption("--programs-one-in", type=int, default=1, metavar="N",
                     help="of the programs of the corpus that PyTorch refuses, run one in so many")
    parser.addoption("--write-pictures", action="store_true", help="take the pictures in docs/pictures anew")


def is_chosen(name, one_in):
    """The same ones in every run, and a spread of them."""
    return zlib.crc32(name.encode()) % one_in == 0


def is_left_out(item):
    option = item.config.getoption
    # Without -m a bare `pytest` leaves out what `scripts/test` does.
    if not option("markexpr") and (item.get_closest_marker("slow") or item.get_closest_marker("gpu")):
        return True
    program = item.callspec.params.get("program") if hasattr(item, "callspec") else None
    if not isinstance(program, pathlib.Path):
        return not is_chosen(item.nodeid, option("one_in"))
    # What is tested of one program is tested of one run of it.
    refused = "\n# expect: raises\n" in program.read_text()
    one_in = max(option("one_in"), option("programs_one_in") if refused else 1)
    return not is_chosen(program.stem, one_in)


def pytest_collection_modifyitems(config, items):
    deselected = [item for item in items if is_left_out(item)]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if item not in deselected]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """The tests of one file share programs that ran once, so a file is the least that a worker gets; of test_programs.py
    what belongs to an eighth of the programs."""
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file, _, test = nodeid.partition("::")
            if not file.endswith("test_programs.py"):
                return file
            return f"{file} {zlib.crc32(test.partition('[')[2].encode()) % 8}"

    return ByFile(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def devsan():
    """The devsan binary: that of .venv, or the one named by the environment variable DEVSAN."""
    path = pathlib.Path(os.environ.get("DEVSAN", ROOT / ".venv/bin/devsan"))
    assert path.exists(), f"{path} is not there: run scripts/setup first"
    return path


@pytest.fixture(scope="session")
def python():
    """The Python whose torch is tested: that of .venv, or the one named by DEVSAN_TEST_PYTHON."""
    return pathlib.Path(os.environ.get("DEVSAN_TEST_PYTHON", ROOT / ".venv/bin/python"))


@pytest.fixture(scope="session")
def torch_version(python):
    """(major, minor) of that torch."""
    return harness.torch_version(python)


@pytest.fixture(scope="session")
def newest_libraries(python):
    """A Python with the newest training libraries over that torch."""
    return make_environment(python, NEWEST)


@pytest.fixture
def run_python(request, devsan, python, tmp_path):
    """Runs programs of the test's own; those of harness.FILES_WITH_FORKS in forks, where that is the same."""
    return Runner(devsan, python, tmp_path, start=not request.path.name.startswith(harness.FILES_WITH_FORKS))
