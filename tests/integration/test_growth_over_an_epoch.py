"""Memory that grows with every batch of an epoch of DeepSpeed's ZeRO-3, with parameters and optimizer on the CPU, gradients
of several batches in each step and sequences in parts on two ranks: what grows is named, with its line and its holder,
and nothing is said of the library itself, which does not."""

import linecache

import pytest

from harness import ROOT, need_simulated_devices
from library_environment import LibraryRunner, make_environment

pytestmark = pytest.mark.slow

PROGRAM = "deepspeed_epoch.py"


@pytest.fixture(scope="module", params=["0_12_3", "0_14_1"])
def epoch(request, devsan, python, tmp_path_factory):
    need_simulated_devices(python)
    library = make_environment(python, ROOT / f"tests/integration/deepspeed_{request.param}_requirements.txt")
    runner = LibraryRunner(devsan, library, tmp_path_factory.mktemp("epoch"))

    def run(kept):
        result = runner.simulated(PROGRAM, kept, ranks=2)
        assert result.status == 0, result.stderr[-4000:]
        assert result.stdout.count("mean loss") == 2
        return result

    return run


def source_of(place):
    return linecache.getline(place["file"], place["line"]).strip()


def growth(result):
    """The one finding of memory that grows, which both ranks have; nothing else is wrong."""
    loud = result.loud()
    assert {f["kind"] for f in loud} == {"memory-growth"}, [f["kind"] for f in loud]
    [finding] = loud
    assert finding["ranks"] == [0, 1]
    return finding


def test_an_epoch_that_keeps_nothing_is_quiet(epoch):
    assert epoch("sound").loud() == []


def test_a_sum_of_losses_that_keeps_the_graphs_of_all_batches(epoch):
    """A backward gives back the results that a graph holds, and what is left are its nodes: of tensors nothing grows."""
    finding = growth(epoch("sum"))
    assert finding["growth"]["holder"] == "total" and finding["growth"]["graph"] is True
    assert finding["growth"]["device"] is None and finding["growth"]["parts"] == []
    assert source_of(finding["root_cause"]) == 'total = total + result["loss"]'
    assert ".item()" in finding["fix"]["text"]


@pytest.mark.parametrize("kept", ["outputs", "saved"])
def test_outputs_that_wait_with_their_graphs_for_the_end_of_the_epoch(epoch, kept):
    finding = growth(epoch(kept))
    assert finding["growth"]["holder"].startswith("outputs[...]") and finding["growth"]["graph"] is True
    assert finding["growth"]["records_per_step"] > 50000
    assert finding["growth"]["device"] is None
    assert finding["root_cause"]["file"].endswith(PROGRAM)
    assert ".detach()" in finding["fix"]["text"]


def test_copies_on_the_host_that_a_hook_collects(epoch):
    finding = growth(epoch("hook"))
    assert finding["growth"]["holder"] == "seen[...]" and finding["growth"]["graph"] is False
    assert finding["growth"]["device"] is None
    assert "register_forward_hook" in source_of(finding["root_cause"])
