import os
import pathlib
import signal

import pytest

import harness
from harness import ROOT, Runner


def pytest_configure():
    # A shell's background job ignores some signals, and what is ignored is inherited by every process of a test.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_modifyitems(config, items):
    if config.getoption("markexpr"):
        return
    # Without -m a bare `pytest` is the quick run that `scripts/test` makes.
    deselected = [item for item in items if item.get_closest_marker("slow") or item.get_closest_marker("gpu")]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if item not in deselected]


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


@pytest.fixture
def run_python(devsan, python, tmp_path):
    return Runner(devsan, python, tmp_path)
