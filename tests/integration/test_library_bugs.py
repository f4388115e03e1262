"""Programs that use a training library wrongly: the line to change is the program's, wherever the library fails.

Each of library_bugs/ has one line `# ROOT`. The releases are those of test_sim_libraries.py, unmodified.
"""

import pytest

from harness import ROOT
from library_environment import LibraryRunner

pytestmark = pytest.mark.slow

PROGRAMS = sorted((ROOT / "tests/integration/library_bugs").glob("*.py"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_cause_of_a_misused_library_is_the_program_s_line(devsan, newest_libraries, tmp_path, program):
    result = LibraryRunner(devsan, newest_libraries, tmp_path)(program, sim=2, env=LibraryRunner.SETTINGS)
    assert result.status == 1, result.stderr
    findings = [f for f in result.raised() if f["kind"] == "device-mismatch"]
    assert len(findings) == 1, [(f["kind"], f["where"]) for f in result.findings]
    root = [number for number, line in enumerate(program.read_text().splitlines(), 1) if "# ROOT" in line]
    cause = findings[0]["root_cause"]
    assert cause and cause["file"] == str(program) and [cause["line"]] == root, (cause, findings[0]["fix"])
    assert findings[0]["fix"]["file"] == str(program), findings[0]["fix"]
