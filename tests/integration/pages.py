"""Pages of `devsan view --html` of programs that tests run."""

import subprocess

import pytest

from harness import Runner, need_simulated_devices


class Pages:
    """Runs a program once and writes its page."""

    def __init__(self, devsan, python, folder):
        self.devsan = devsan
        self.run = Runner(devsan, python, folder, start=True)
        self.folder = folder

    def of(self, program, *arguments, name="report.html", sim=1, **options):
        result = self.run(program, *arguments, sim=sim, **options)
        file = self.folder / name
        done = subprocess.run([self.devsan, "view", result.out, "--html", file], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        return file, result


@pytest.fixture(scope="module")
def pages(devsan, python, tmp_path_factory):
    need_simulated_devices(python)
    return Pages(devsan, python, tmp_path_factory.mktemp("pages"))
