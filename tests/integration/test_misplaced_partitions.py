"""DeepSpeed's ZeRO-3 on two ranks under `torchrun --logs-specs=devsan`, where a line of the program takes a group of one
rank off the CPU that the config offloads it to: one report of both ranks, in every format."""

import json
import subprocess

import jsonschema
import pytest

from browser import browser, visit
from harness import ROOT, need_simulated_devices
from launchers import Launcher
from library_environment import PROGRAMS, LibraryRunner

pytestmark = pytest.mark.slow

PROGRAM = PROGRAMS / "deepspeed_moved_group.py"
MOVE = "group.data = group.data.to(\"cuda\")"
LINE = PROGRAM.read_text().splitlines().index("    " + MOVE) + 1
GROUP = "engine.optimizer.fp32_partitioned_groups_flat[0]"


class Job:
    """Two ranks of the program under torchrun, and what devsan makes of their traces."""

    def __init__(self, devsan, python, folder, how):
        self.launcher = Launcher(devsan, python, folder)
        env = {**LibraryRunner.SETTINGS, "DEVSAN_OPTIONS": f"sim=2:out={self.launcher.out}"}
        self.done = self.launcher.run(python, "-m", "torch.distributed.run", "--logs-specs=devsan", "--standalone",
                                      "--nproc-per-node=2", PROGRAM, how, env=env)

    def view(self, *words):
        done = subprocess.run([self.launcher.devsan, "view", self.launcher.out, *words], capture_output=True, text=True,
                              timeout=120, cwd=self.launcher.folder)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout

    def written(self, flag, name):
        self.view(flag, self.launcher.folder / name)
        return self.launcher.folder / name


@pytest.fixture(scope="module")
def silent(devsan, newest_libraries, tmp_path_factory):
    need_simulated_devices(newest_libraries)
    return Job(devsan, newest_libraries, tmp_path_factory.mktemp("whole"), "whole")


def test_the_training_goes_on_in_silence(silent):
    assert silent.done.status == 0, silent.done.stderr[-4000:]
    assert silent.done.stdout.count("trained") == 2


def test_json_has_one_finding_of_the_rank_with_the_tensor_and_the_line(silent):
    report = silent.done.report
    jsonschema.validate(report, json.loads((ROOT / "report/render/report.schema.json").read_text()))
    loud = [f for f in report["findings"] if f["severity"] != "note"]
    [finding] = loud
    assert (finding["kind"], finding["rank"], finding["ranks"]) == ("wrong-placement", 1, [1])
    expectation = finding["expectation"]
    assert (expectation["rule"], expectation["names"]) == ("partition-where-configured", [GROUP])
    assert (expectation["expected"], expectation["found"]) == ("cpu", "cuda:1")
    cause = finding["root_cause"]
    assert (cause["file"], cause["line"], cause["source"].strip()) == (str(PROGRAM), LINE, MOVE)
    assert finding["other_ranks"] == [0]
    assert len(report["run"]["processes"]) == 2 and not report["damage"]


def test_the_terminal_begins_with_the_rank_the_tensor_and_the_line(silent):
    text = " ".join(silent.view().split())
    first = text[:text.index("Where `")]
    assert f"`{GROUP}` is on cuda:1, where cpu is expected" in first
    assert f"{PROGRAM.name}:{LINE}" in first and MOVE in first
    assert "rank 1" in first


def test_markdown_names_the_rank_the_tensor_and_the_line(silent):
    text = silent.written("--markdown", "report.md").read_text()
    assert "devsan's own expectation partition-where-configured" in text
    assert GROUP in text and f"{PROGRAM.name}:{LINE}" in text and MOVE in text
    assert "rank 1" in text and "Rank 0" in text


def test_sarif_names_the_rank_the_tensor_and_the_line(silent):
    [run] = json.loads(silent.written("--sarif", "report.sarif").read_text())["runs"]
    [result] = [one for one in run["results"] if one["ruleId"] == "wrong-placement"]
    assert run["results"][0] == result
    assert GROUP in result["message"]["text"] and "rank 1" in result["message"]["text"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"].endswith(PROGRAM.name) and place["region"]["startLine"] == LINE
    assert (result["properties"]["ranks"], result["properties"]["otherRanks"]) == ([1], [0])


def test_the_page_begins_with_the_rank_the_tensor_and_the_line(silent):
    file = silent.written("--html", "report.html")
    with browser() as running, visit(running, file) as visited:
        first = visited.text("main")
        assert GROUP in first and "rank 1" in first.lower()
        assert f"{PROGRAM.name}:{LINE}" in first
        assert visited.complaints == []


def test_a_group_without_its_gradient_is_refused_and_the_cause_is_the_line_that_moved_it(
        devsan, newest_libraries, tmp_path):
    need_simulated_devices(newest_libraries)
    job = Job(devsan, newest_libraries, tmp_path, "alone")
    assert job.done.status != 0
    loud = [f for f in job.done.report["findings"] if f["severity"] == "error" and f["kind"] == "device-mismatch"]
    [finding] = loud
    assert finding["ranks"] == [1]
    assert job.done.report["run"]["first_failure"]["rank"] == 1
    assert "rank 1 failed first" in job.view("--markdown").split("###")[0]
    assert (finding["root_cause"]["file"], finding["root_cause"]["line"]) == (str(PROGRAM), LINE)
    assert any(f["kind"] == "wrong-placement" and f["ranks"] == [1] for f in job.done.report["findings"])
