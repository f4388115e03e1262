"""What scripts/bench makes of the rounds that it measures: no clock and no torch, but numbers drawn with a fixed seed."""

import itertools
import math
import random
import sys

import pytest

from harness import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

from bench_statistics import (FEWEST, MET, NOT_MET, NOT_TOLD, Aim, Estimate, Round, Sampler, estimate,  # noqa: E402
                              orders, verdict)

TRUTH = 1.015


def drawn(chance, spread=0.01, spoiled=0.0):
    """A round's ratio: of the spoiled ones another program had its part."""
    noise = chance.gauss(0, 20 * spread if chance.random() < spoiled else spread)
    return TRUTH * math.exp(noise)


@pytest.mark.parametrize("spoiled", [0.0, 0.15])
@pytest.mark.parametrize("count", [10, 40])
def test_the_interval_holds_the_truth_in_95_of_100_cases(spoiled, count):
    chance = random.Random(7)
    held = 0
    for _ in range(400):
        told = estimate([drawn(chance, spoiled=spoiled) for _ in range(count)])
        held += told.interval[0] <= TRUTH <= told.interval[1]
    assert 0.92 * 400 <= held <= 0.985 * 400


def test_more_rounds_make_the_interval_narrower():
    chance = random.Random(1)
    ratios = [drawn(chance) for _ in range(400)]
    few, many = estimate(ratios[:25]), estimate(ratios)
    assert many.reaches() < few.reaches() / 3
    assert abs(many.ratio - TRUTH) < 0.002


def test_spoiled_rounds_hardly_move_what_is_told():
    chance = random.Random(2)
    ratios = [drawn(chance, spread=0.002) for _ in range(40)]
    spoiled = ratios[:32] + [ratio * 5 for ratio in ratios[32:]]
    assert abs(estimate(spoiled).ratio - estimate(ratios).ratio) < 0.003


def test_too_few_rounds_have_no_interval():
    assert estimate([1.0] * (FEWEST - 1)).interval is None
    assert estimate([1.0] * FEWEST).interval == (1.0, 1.0)


def test_blocks_of_a_round_come_in_an_order_in_which_a_drift_cancels_out():
    seen = list(itertools.islice(orders(), 200))
    assert set(seen) == {(0, 1, 1, 0), (1, 0, 0, 1)}
    assert 70 < seen.count((0, 1, 1, 0)) < 130
    assert seen[:50] != [(0, 1, 1, 0), (1, 0, 0, 1)] * 25


BUDGET = Aim(1.02, 0.004)
NOTHING = Aim(1.0, 0.002, trusted=0.005)


@pytest.mark.parametrize("aim, interval, told", [
    (BUDGET, (1.010, 1.019), MET),
    (BUDGET, (1.010, 1.020), MET),
    (BUDGET, (1.018, 1.022), NOT_TOLD),  # the budget is inside
    (BUDGET, (1.021, 1.025), NOT_MET),
    (BUDGET, (0.970, 1.010), NOT_TOLD),  # it reaches further than 1 % either way
    (BUDGET, (1.050, 1.200), NOT_MET),  # which serves nobody as an excuse
    (BUDGET, None, NOT_TOLD),
    (NOTHING, (0.998, 1.003), MET),
    (NOTHING, (1.001, 1.003), NOT_MET),
    (NOTHING, (0.994, 1.006), NOT_TOLD),  # too wide to hold nothing
    (NOTHING, (0.995, 0.999), NOT_TOLD),  # devsan makes nothing faster: something is wrong with the measurement
])
def test_a_budget_is_met_when_the_whole_interval_is_within(aim, interval, told):
    assert verdict(Estimate(1.0, interval), aim) == told


class Machine:
    """A clock that only measuring moves on: `seconds` for a round of each work, ratios around 1 by `spread`."""

    def __init__(self, seconds, spread):
        self.now, self.seconds, self.spread = 0.0, seconds, spread
        self.chance = random.Random(3)

    def measure(self, name):
        self.now += self.seconds[name]
        return Round((1.0, 1.0), (math.exp(self.chance.gauss(0, self.spread[name])), 1.0))

    def sampled(self, aims, seconds, least=8):
        sampler = Sampler(aims, least, clock=lambda: self.now)
        sampler.run(self.measure, seconds)
        return sampler


def test_a_work_ends_when_it_is_narrow_enough_and_leaves_its_time_to_the_others():
    machine = Machine({"steady": 1, "noisy": 1}, {"steady": 0.001, "noisy": 0.05})
    sampler = machine.sampled({"steady": Aim(1.02, 0.004), "noisy": Aim(1.02, 0.004)}, 100)
    assert len(sampler.rounds["steady"]) == 8 and sampler.figures("steady")["narrow"]
    assert len(sampler.rounds["noisy"]) == 92 and not sampler.figures("noisy")["narrow"]
    assert sampler.figures("steady")["verdict"] == MET and sampler.figures("noisy")["verdict"] == NOT_TOLD


def test_all_ends_before_the_time_when_all_is_narrow_enough():
    machine = Machine({"one": 1, "two": 1}, {"one": 0.002, "two": 0.003})
    sampler = machine.sampled({"one": BUDGET, "two": BUDGET}, 1000)
    assert machine.now < 100
    assert all(sampler.estimates[name].reaches() <= BUDGET.width for name in ("one", "two"))


def test_time_is_shared_by_time_and_not_by_rounds():
    machine = Machine({"short": 1, "long": 10}, {"short": 0.5, "long": 0.5})
    sampler = machine.sampled({"short": BUDGET, "long": BUDGET}, 200)
    assert abs(len(sampler.rounds["short"]) - 100) <= 10 and abs(len(sampler.rounds["long"]) - 10) <= 1
    assert machine.now <= 200


def test_each_work_has_a_round_even_when_the_time_is_over_at_once():
    sampler = Machine({"one": 5, "two": 5}, {"one": 0.1, "two": 0.1}).sampled({"one": BUDGET, "two": BUDGET}, 1)
    for name in ("one", "two"):
        figures = sampler.figures(name)
        assert (figures["rounds"], figures["interval"], figures["verdict"]) == (1, None, NOT_TOLD)


def test_the_end_does_not_look_at_where_the_interval_lies():
    rounds = []
    for truth in (1.0, 1.02, 1.5):
        machine = Machine({"one": 1}, {"one": 0.01})
        measure, machine.measure = machine.measure, lambda name, times=truth: scaled(measure(name), times)
        rounds.append(len(machine.sampled({"one": Aim(1.02, 0.004)}, 1000).rounds["one"]))
    assert rounds[0] == rounds[1] and rounds[0] <= rounds[2]


def scaled(one, times):
    return Round(one.off, (one.on[0] * times, one.on[1]))
