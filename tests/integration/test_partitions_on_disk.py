"""DeepSpeed's ZeRO-3 with an optimizer and parameters on disk (`device: nvme`): training is silent and computes what it
computes without devsan, and a group that a line leaves on the GPU is a finding."""

import ctypes.util

import pytest

from harness import need_simulated_devices
from library_environment import PROGRAMS, LibraryRunner, operators_of_deepspeed

pytestmark = pytest.mark.slow

PROGRAM = PROGRAMS / "deepspeed_nvme.py"
MASTER = "engine.optimizer.fp32_partitioned_groups_flat"
WEIGHTS = "engine.optimizer.fp16_partitioned_groups_flat"
MOVE = 'group.data = group.data.to("cuda")'


@pytest.fixture(scope="module")
def operators(newest_libraries):
    need_simulated_devices(newest_libraries)
    if ctypes.util.find_library("aio") is None:
        pytest.skip("no libaio; scripts/setup --tests installs libaio-dev")
    return operators_of_deepspeed(newest_libraries, "ShareMemCommBuilder", "CPUAdamBuilder", "AsyncIOBuilder")


@pytest.fixture
def run(devsan, newest_libraries, operators, tmp_path):
    runner = LibraryRunner(devsan, newest_libraries, tmp_path)
    env = {**LibraryRunner.SETTINGS, "TORCH_EXTENSIONS_DIR": str(operators)}

    def run(setting, group, ranks=1, **how):
        result = runner(runner.program_of_ranks(ranks), PROGRAM, tmp_path / "disk", setting, group, env=env, timeout=900,
                        **(how or {"sim": ranks}))
        assert result.status == 0, result.stderr[-4000:]
        assert result.stdout.count("trained") == ranks
        return result

    return run


def said(result, word):
    return [line for line in result.stdout.splitlines() if line.startswith(word)]


@pytest.mark.parametrize("setting, group, ranks, folders", [
    ("optimizer", "kept", 1, "optimizer"),
    ("optimizer", "pipelined", 1, "optimizer"),
    ("param", "kept", 1, "float32params"),
    ("both", "kept", 2, "float32params optimizer"),
], ids=["optimizer", "pipelined", "parameters", "both on two ranks"])
def test_training_with_its_states_on_disk_is_silent_and_the_same(run, setting, group, ranks, folders):
    simulated = run(setting, group, ranks)
    assert simulated.loud() == []
    assert said(simulated, "folders") == [f"folders {folders}"]
    assert said(simulated, "loss") == said(run(setting, group, ranks, plain=True), "loss") != []


def test_a_group_that_was_read_from_disk_into_memory_is_no_finding(run):
    assert run("optimizer", "read").loud() == []


@pytest.mark.parametrize("setting, group, name, line", [
    ("optimizer", "moved", f"{MASTER}[0]", MOVE),
    ("optimizer", "small", f"{MASTER}[1]", MOVE),
    ("param", "memory", f"{WEIGHTS}[0]", 'groups[0] = groups[0].to("cuda")'),
], ids=["read from disk", "kept in memory", "parameters"])
def test_a_group_that_a_line_leaves_on_the_gpu_is_one_finding_with_that_line(run, setting, group, name, line):
    [finding] = run(setting, group).loud()
    expectation = finding["expectation"]
    assert (finding["kind"], expectation["rule"]) == ("wrong-placement", "partition-where-configured")
    assert (expectation["expected"], expectation["found"], expectation["names"]) == ("cpu", "cuda:0", [name])
    assert (finding["root_cause"]["file"], finding["root_cause"]["source"].strip()) == (str(PROGRAM), line)
