"""The same program at every place where Python runs one: its finding has the right line, names and cause."""

import pathlib
import subprocess
import zipfile

import pytest

from hooks_programs import line_of
from places import PROGRAM, REFUSED, Place


@pytest.fixture
def place(devsan, python, tmp_path):
    return Place(devsan, python, tmp_path)


# ---- programs that are no files

def test_a_program_given_on_the_command_line(place):
    place.run(place.python, "-c", PROGRAM).ended().found("<string>")


def test_text_for_exec_is_not_taken_for_the_program_on_the_command_line(place):
    inner = "import torch\n\n\ndef work():\n    torch.ones(3, device='cuda') + torch.ones(3)\n"
    outer = f"names = {{}}\nexec({inner!r}, names)\n\ntry:\n    names['work']()\nexcept RuntimeError:\n    print('refused')\n"
    place.run(place.python, "-c", outer).ended()
    [found] = place.raised()
    assert (found["where"]["file"], found["where"]["line"], found["where"]["source"]) == ("<exec>", 5, None)
    assert [(frame["file"], frame["line"]) for frame in found["stack"]] == [("<exec>", 5), ("<string>", 5)]
    assert found["stack"][1]["source"].strip() == "names['work']()"


def test_a_program_on_standard_input(place):
    with open(place.file("toy.py", PROGRAM)) as program:
        place.run(place.python, "-", stdin=program).ended().found("<stdin>")


def test_a_program_in_a_pipe_is_found_without_its_text(place):
    [found] = place.run(place.python, stdin=PROGRAM).ended().raised()
    assert (found["where"]["file"], found["where"]["line"]) == ("<stdin>", line_of(PROGRAM, "here"))
    assert found["where"]["source"] is None


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED], ids=["stored", "deflated"])
def test_a_program_in_an_archive(place, method):
    with zipfile.ZipFile(place.folder / "toy.pyz", "w", method) as archive:
        archive.writestr("toy/__init__.py", "")
        archive.writestr("toy/net.py", PROGRAM)
        archive.writestr("__main__.py", "import toy.net\ntoy.net.run()\n")
    place.run(place.python, place.folder / "toy.pyz").ended().found("toy.pyz/toy/net.py")


# ---- other ways to a file

def test_a_module_of_a_package_without_asserts_in_development_mode(place):
    place.file("toy/__init__.py", "")
    place.file("toy/__main__.py", PROGRAM)
    place.run(place.python, "-OO", "-X", "dev", "-m", "toy").ended().found("toy/__main__.py")


def test_a_file_run_by_runpy_and_by_exec(place):
    file = place.file("toy.py", PROGRAM)
    main = place.file("main.py", f"""
        import runpy
        path = {str(file)!r}
        runpy.run_path(path, run_name="__main__")
        exec(compile(open(path).read(), path, "exec"), {{"__name__": "__main__"}})
        """)
    place.run(place.python, main).ended(REFUSED * 2).found("toy.py", count=2)


def test_debian_s_python(place):
    """Another build of Python with the same torch: its library is part of the executable."""
    debian = pathlib.Path("/usr/bin/python3")
    facts = "import sys, sysconfig; print(sys.version_info[:2], sysconfig.get_path('purelib'))"
    versions = [subprocess.run([one, "-c", facts], capture_output=True, text=True).stdout if one.exists() else ""
                for one in (debian, pathlib.Path(place.python))]
    if versions[0].split(")")[0] != versions[1].split(")")[0]:
        pytest.skip("/usr/bin/python3 is not there, or of another release than the Python of this torch")
    packages = versions[1].split(")")[1].strip()
    file = place.file("toy.py", PROGRAM)
    place.run(debian, file, env={"PYTHONPATH": packages}).ended().found("toy.py")
