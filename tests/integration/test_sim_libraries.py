"""Training libraries on simulated devices: unmodified, without findings, and with the numbers of the CPU.

The programs are in library_programs/. Each prints numbers by scenario, which are compared with those of the same
program on the CPU, without devsan. Models have random weights and are made from a configuration: nothing is downloaded
from a hub.
"""

import json

import pytest

from library_environment import DEEPSPEED_0_14_2, LibraryRunner, make_environment

pytestmark = pytest.mark.slow

# Relative. CUDA's autocast leaves other operators in single precision than the CPU's, and ZeRO keeps weights in half.
TOLERANCE, HALF_TOLERANCE = 1e-5, 5e-3


@pytest.fixture(scope="module")
def deepspeed_0_14_2(python):
    return make_environment(python, DEEPSPEED_0_14_2)


@pytest.fixture
def libraries(devsan, newest_libraries, tmp_path):
    return LibraryRunner(devsan, newest_libraries, tmp_path)


@pytest.fixture
def old_deepspeed(devsan, deepspeed_0_14_2, tmp_path):
    return LibraryRunner(devsan, deepspeed_0_14_2, tmp_path)


def numbers_of(result):
    assert result.status == 0, result.stderr[-4000:]
    return json.loads([line for line in result.stdout.splitlines() if line.startswith("{")][-1])


def assert_close(ours, theirs, tolerance, path):
    """Whole numbers, as tokens are, are equal; others are close."""
    assert type(ours) is type(theirs), path
    if isinstance(ours, dict):
        assert ours.keys() == theirs.keys(), path
        for key in ours:
            assert_close(ours[key], theirs[key], tolerance, f"{path}/{key}")
    elif isinstance(ours, list):
        assert len(ours) == len(theirs), path
        for index, (one, other) in enumerate(zip(ours, theirs)):
            assert_close(one, other, tolerance, f"{path}/{index}")
    elif isinstance(ours, float):
        assert ours == pytest.approx(theirs, rel=tolerance), path
    else:
        assert ours == theirs, path


def assert_same_numbers(simulated, on_cpu):
    ours, theirs = numbers_of(simulated), numbers_of(on_cpu)
    assert ours.keys() == theirs.keys() and ours
    for scenario in ours:
        half = "bf16" in scenario or "fp16" in scenario
        assert_close(ours[scenario], theirs[scenario], HALF_TOLERANCE if half else TOLERANCE, scenario)


def assert_quiet(result):
    """Nothing is wrong with these programs, and the report says so."""
    assert [(f["kind"], f["where"], f["message"]) for f in result.loud()] == []
    assert not result.report["damage"]


def devices_used(result):
    curves = [curve for process in result.report["run"]["processes"] for curve in process.get("memory", [])]
    return {curve["device"] for curve in curves} - {None}  # None is the host


def check(libraries, program, *args, expected_args=None, used, **settings):
    simulated = libraries.simulated(program, *args, **settings)
    assert_same_numbers(simulated, libraries.on_cpu(program, *(args if expected_args is None else expected_args)))
    assert_quiet(simulated)
    assert devices_used(simulated) == used


def test_transformers_on_one_device(libraries):
    check(libraries, "transformers_trainer.py", 1, devices=1, used={"cuda:0"})


def test_transformers_gives_a_batch_to_two_devices_by_data_parallel(libraries):
    check(libraries, "transformers_trainer.py", 2, expected_args=[1], used={"cuda:0", "cuda:1"})


def test_transformers_on_two_ranks(libraries):
    check(libraries, "transformers_trainer.py", 2, expected_args=[1], ranks=2, used={"cuda:0", "cuda:1"})


def test_architectures_of_transformers(libraries):
    check(libraries, "transformers_models.py", devices=1, used={"cuda:0"})


def test_accelerate(libraries):
    check(libraries, "accelerate_loop.py", used={"cuda:0", "cuda:1"})


def test_peft(libraries):
    check(libraries, "peft_lora.py", devices=1, used={"cuda:0"})


@pytest.mark.parametrize("count", [1, 2])
def test_lightning(libraries, count):
    check(libraries, "lightning_fit.py", count, used={f"cuda:{index}" for index in range(count)})


# DeepSpeed keeps a part of each destroyed engine: of 0.19.8 and ZeRO-3 over 1 MiB, also without devsan. A process
# that makes one after another grows, which would be a finding: none here takes the twenty steps it needs, but for the
# long one, which has a single engine.
ZERO = {
    "whole": ["1 fp32", "1 bf16", "2 fp16", "2 bf16"],
    "offloaded": ["1 fp16 optimizer", "2 fp32 optimizer", "2 bf16 pinned optimizer", "3 fp16 optimizer"],
    "parameters": ["3 bf16", "3 fp32 pinned optimizer", "3 bf16 optimizer parameters", "3 fp16 pinned parameters"],
    "resumed": ["1 fp16 resume", "2 fp32 optimizer resume", "3 fp32 resume", "3 fp32 optimizer parameters resume"],
    "long": ["3 fp32 optimizer parameters long"],
}


@pytest.mark.parametrize("scenarios", ZERO.values(), ids=ZERO)
@pytest.mark.parametrize("ranks", [1, 2])
def test_deepspeed(libraries, ranks, scenarios):
    check(libraries, "deepspeed_zero.py", *scenarios, ranks=ranks, used={f"cuda:{rank}" for rank in range(ranks)})


@pytest.mark.parametrize("ranks", [1, 2])
def test_deepspeed_0_14_2(old_deepspeed, ranks):
    scenarios = ["1 fp32", "2 fp16 pinned optimizer", "3 bf16", "3 fp16"]
    check(old_deepspeed, "deepspeed_zero.py", *scenarios, ranks=ranks, used={f"cuda:{rank}" for rank in range(ranks)})


def test_the_offload_of_deepspeed_0_14_2_fails_as_on_hardware(old_deepspeed):
    """DeepSpeed issue 5422: with the optimizer offloaded, the norm of the gradients stays on the device."""
    result = old_deepspeed.simulated("deepspeed_zero.py", "3 bf16 optimizer parameters", ranks=1)
    assert result.status != 0
    (finding,) = [f for f in result.loud() if f["kind"] == "device-mismatch"]
    assert finding["severity"] == "error" and finding["op"] == "aten::mul_.Tensor"
    assert finding["where"]["function"].endswith("unscale_and_clip_grads")
    assert finding["root_cause"]["file"].endswith("deepspeed/runtime/zero/stage3.py")
