"""DeepSpeed's ZeRO-3 with a half of its optimizer on the CPU (`ratio`), and with states that are sent away and fetched
(`offload_states`): what is where the settings want it is no finding, a group that a line moves is one."""

import pytest

from harness import need_simulated_devices
from library_environment import PROGRAMS, LibraryRunner, operators_of_deepspeed

pytestmark = pytest.mark.slow

PROGRAM = PROGRAMS / "deepspeed_settings.py"
MOVE = 'group.data = group.data.to("cpu" if group.is_cuda else "cuda")'
GROUP = "engine.optimizer.fp32_partitioned_groups_flat[0]"


@pytest.fixture(scope="module")
def operators(newest_libraries):
    need_simulated_devices(newest_libraries)
    return operators_of_deepspeed(newest_libraries, "CPUAdamBuilder")


@pytest.fixture
def run(devsan, newest_libraries, operators, tmp_path):
    runner = LibraryRunner(devsan, newest_libraries, tmp_path)
    env = {**LibraryRunner.SETTINGS, "TORCH_EXTENSIONS_DIR": str(operators)}

    def run(setting, group):
        result = runner(runner.program_of_ranks(1), PROGRAM, setting, group, sim=1, env=env, timeout=900)
        assert result.status == 0, result.stderr[-4000:]
        assert "trained" in result.stdout
        return result

    return run


def misplaced(result):
    return [f for f in result.loud()
            if f["kind"] == "wrong-placement" and f["expectation"]["rule"] == "partition-where-configured"]


@pytest.mark.parametrize("setting, group, homes", [
    ("ratio", "kept", "groups ['cuda', 'cpu', 'cpu']"),
    ("states", "kept", "away ['cpu', 'cpu', 'cpu']"),
    ("states", "away", "away ['cpu', 'cpu', 'cpu']"),
], ids=["ratio", "fetched again", "away"])
def test_groups_that_are_where_the_settings_want_them_are_no_finding(run, setting, group, homes):
    result = run(setting, group)
    assert homes in result.stdout
    assert result.loud() == []


@pytest.mark.parametrize("setting, expected", [("ratio", "cuda"), ("states", "cuda:0")])
def test_a_group_that_a_line_moved_to_the_cpu_is_a_finding_with_that_line(run, setting, expected):
    [finding] = misplaced(run(setting, "moved"))
    expectation = finding["expectation"]
    assert (expectation["expected"], expectation["found"], expectation["names"]) == (expected, "cpu", [GROUP])
    assert (finding["root_cause"]["file"], finding["root_cause"]["source"].strip()) == (str(PROGRAM), MOVE)
