"""Programs that use a training library wrongly: the report names lines of the program, wherever the library fails.

Each of library_bugs/ has one line `# ROOT`. The releases are those of test_sim_libraries.py, unmodified. The ranking is not
fitted to these: how often it names the marked line is in docs/causes/README.md.
"""

import pytest

from harness import ROOT
from library_environment import LibraryRunner

pytestmark = pytest.mark.slow

PROGRAMS = sorted((ROOT / "tests/integration/library_bugs").glob("*.py"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_lines_of_the_program_are_proposed_where_it_misuses_a_library(devsan, newest_libraries, tmp_path, program):
    result = LibraryRunner(devsan, newest_libraries, tmp_path)(program, sim=2, env=LibraryRunner.SETTINGS)
    assert result.status == 1, result.stderr
    findings = [f for f in result.raised() if f["kind"] == "device-mismatch"]
    assert len(findings) == 1, [(f["kind"], f["where"]) for f in result.findings]
    finding = findings[0]
    proposed = [finding["root_cause"], *finding["alternatives"]]
    assert finding["root_cause"] and finding["fix"]["text"], finding["root_cause"]
    assert any(cause["file"] == str(program) for cause in proposed), proposed
