"""Training libraries that are used as their authors mean: devsan has nothing to say, with all its own expectations on.

Each program of library_programs/clean_*.py trains for 40 steps or more and evaluates as many batches, on simulated
devices, or runs a pipeline. That is enough for what grows to show, and all that modules and optimizers keep is looked
at.
"""

import pytest

from harness import view
from library_environment import LibraryRunner

pytestmark = pytest.mark.slow

STEPS = 40


@pytest.fixture
def clean(devsan, newest_libraries, tmp_path):
    return LibraryRunner(devsan, newest_libraries, tmp_path)


def names_looked_at(devsan, run, tmp_path):
    """How many tensors a rule that nothing keeps finds: those that devsan knew the places of."""
    rules = tmp_path / "nowhere.toml"
    rules.write_text('expect = "* on meta"')
    findings = view(devsan, run.out, "--rules", rules)["findings"]
    broken = [f["expectation"] for f in findings if f["kind"] == "wrong-placement"]
    return sum(expectation["tensors"] for expectation in broken if expectation["file"])


def check(clean, program, *words, trains=True, **settings):
    run = clean.simulated(program, *words, **settings)
    assert run.status == 0, run.stderr[-4000:]
    assert [(f["kind"], f["where"], f["message"], f.get("expectation")) for f in run.loud()] == []
    assert not run.report["damage"]
    assert (run.report["run"]["optimizer_steps"] >= STEPS) == trains
    assert names_looked_at(clean.devsan, run, clean.scratch) > 0


@pytest.mark.parametrize("words", ["1", "2", "2 optimizer pinned", "3", "3 init", "3 parameters",
                                   "3 optimizer parameters pinned", "3 optimizer parameters init"])
def test_deepspeed(clean, words):
    check(clean, "clean_deepspeed.py", *words.split(), ranks=2)


def test_experts_that_two_ranks_of_deepspeed_divide(clean):
    check(clean, "clean_experts.py", ranks=2)


def test_an_expert_that_leaves_its_rank_is_told_of(clean):
    run = clean.simulated("clean_experts.py", "astray", ranks=2)
    assert run.status == 0, run.stderr[-4000:]
    [finding] = run.loud()
    assert (finding["kind"], finding["ranks"]) == ("wrong-placement", [1])
    expectation = finding["expectation"]
    assert expectation["rule"] == "expert-where-its-group-is"
    assert expectation["names"][0] == "model.layers.1.moe.deepspeed_moe.experts.deepspeed_experts.1.up.weight"
    assert finding["where"]["source"].strip().endswith('.to("cuda:0")')


@pytest.mark.parametrize("words", ["fully_shard", "fully_shard offloaded", "wrapped", "wrapped offloaded",
                                   "wrapped offloaded flat"])
def test_fsdp(clean, words):
    check(clean, "clean_fsdp.py", *words.split(), ranks=2)


@pytest.mark.parametrize("way", ["prepared", "dispatched", "offloaded", "disk", "partly"])
def test_accelerate(clean, way):
    check(clean, "clean_accelerate.py", way)


def test_accelerate_shards_over_two_ranks(clean):
    check(clean, "clean_accelerate.py", "sharded", ranks=2)


def test_transformers(clean):
    check(clean, "clean_trainer.py", devices=1)


def test_transformers_on_two_ranks(clean):
    check(clean, "clean_trainer.py", ranks=2)


@pytest.mark.parametrize("average", ["ema", "host", "swa"])
@pytest.mark.parametrize("count", [1, 2])
def test_lightning(clean, count, average):
    check(clean, "clean_lightning.py", count, average)


def test_peft(clean):
    check(clean, "clean_peft.py", devices=1)


def test_diffusers_with_an_average(clean):
    check(clean, "clean_diffusers.py", "train", devices=1)


@pytest.mark.parametrize("way", ["model", "sequential", "group"])
def test_diffusers_in_an_offloaded_pipeline(clean, way):
    check(clean, "clean_diffusers.py", way, trains=False, devices=1)
