"""How the cost of a step is estimated from rounds, when enough of them are measured, and what a budget says to it.

A round runs four blocks of a step, off-on-on-off or on-off-off-on by lot, and gives one ratio, from which a drift of the
clock or of the machine's load has cancelled out. Rounds are few and some are spoiled, so nothing here assumes how they
are distributed but that a round is as likely too high as too low, by the logarithm of its ratio: on and off change
places in the lot.
"""

import math
import random
import statistics
import time
from typing import Callable, Iterator, NamedTuple, Sequence

FEWEST = 6  # of fewer values no interval holds the middle with 95 % confidence
LOOKS = 1.25  # an interval is worked out anew when there are so many times the rounds of the last time

MET, NOT_MET, NOT_TOLD = "met", "NOT MET", "NOT TOLD"


class Aim(NamedTuple):
    """What a step is measured for.

    `budget` is the most that its ratio may be; 1 means that nothing may be added. Rounds end when the interval reaches
    no further than `width` either way. One that reaches further than `trusted` never says that a budget is met.
    """

    budget: float
    width: float
    trusted: float = 0.01


class Estimate(NamedTuple):
    """A ratio, and the interval that holds it with 95 % confidence; None where there are too few rounds for one."""

    ratio: float
    interval: tuple[float, float] | None

    def reaches(self) -> float:
        """How far the interval goes either way: the half of its width."""
        return math.inf if self.interval is None else (self.interval[1] - self.interval[0]) / 2


class Round(NamedTuple):
    """Seconds of one step by the clock, and of this thread's processor time, without what is measured and with it."""

    off: tuple[float, float]
    on: tuple[float, float]


def orders(seed: int = 0) -> Iterator[tuple[int, int, int, int]]:
    """Which of the four blocks of each round has it switched on."""
    chance = random.Random(seed)
    while True:
        yield chance.choice([(0, 1, 1, 0), (1, 0, 0, 1)])


def estimate(ratios: Sequence[float]) -> Estimate:
    """The median of the means of all pairs (Hodges and Lehmann), with the interval of Wilcoxon's signed ranks.

    It is nearly as sharp as a mean, and a quarter of the rounds can be spoiled without moving it far.
    """
    logs = [math.log(ratio) for ratio in ratios]
    means = sorted((one + two) / 2 for at, one in enumerate(logs) for two in logs[at:])
    middle = (means[(len(means) - 1) // 2] + means[len(means) // 2]) / 2
    count = len(logs)
    if count < FEWEST:
        return Estimate(math.exp(middle), None)
    deviation = math.sqrt(count * (count + 1) * (2 * count + 1) / 24)
    below = max(0, math.floor(count * (count + 1) / 4 - 1.96 * deviation - 0.5))
    return Estimate(math.exp(middle), (math.exp(means[below]), math.exp(means[-1 - below])))


def verdict(told: Estimate, aim: Aim) -> str:
    """Met, when the whole interval is within the budget; not met, when the whole of it is beyond; else it is not told."""
    if told.interval is None:
        return NOT_TOLD
    low, high = told.interval
    if low > aim.budget:
        return NOT_MET
    if told.reaches() > aim.trusted:
        return NOT_TOLD
    if aim.budget == 1:
        return MET if low <= 1 <= high else NOT_TOLD
    return MET if high <= aim.budget else NOT_TOLD


class Sampler:
    """The rounds of several works: of those that are not told narrowly enough yet, the one that had the least time so far
    goes on. What one does not need of its share is so left to the others.

    It looks at how wide an interval is and never at where it lies: so the end favours no verdict.
    """

    def __init__(self, aims: dict[str, Aim], least: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.aims = aims
        self.least = max(least, FEWEST)
        self.clock = clock
        self.rounds: dict[str, list[Round]] = {name: [] for name in aims}
        self.estimates: dict[str, Estimate] = {}
        self.spent = dict.fromkeys(aims, 0.0)
        self.next_look = dict.fromkeys(aims, self.least)

    def is_narrow(self, name: str) -> bool:
        return name in self.estimates and self.estimates[name].reaches() <= self.aims[name].width

    def run(self, measure: Callable[[str], Round], seconds: float) -> None:
        """Measures until all is narrow or the time is over. Each has one round; a further one is begun when it ends in time,
        if it takes as long as the last one."""
        over = self.clock() + seconds
        longest = dict.fromkeys(self.aims, 0.0)
        while True:
            began = self.clock()
            open_ones = [name for name in self.aims if not self.rounds[name]
                         or not self.is_narrow(name) and began + longest[name] <= over]
            if not open_ones:
                break
            name = min(open_ones, key=self.spent.__getitem__)
            self.rounds[name].append(measure(name))
            self.look(name)
            longest[name] = self.clock() - began
            self.spent[name] += longest[name]
        for name, rounds in self.rounds.items():
            self.estimates[name] = estimate(ratios(rounds, 0))

    def look(self, name: str) -> None:
        count = len(self.rounds[name])
        if count >= self.next_look[name]:
            self.estimates[name] = estimate(ratios(self.rounds[name], 0))
            self.next_look[name] = math.ceil(count * LOOKS)

    def figures(self, name: str) -> dict:
        """What is written down of one work."""
        rounds, aim = self.rounds[name], self.aims[name]
        told, cpu = self.estimates[name], estimate(ratios(rounds, 1))
        return {"ms_off": statistics.median(one.off[0] for one in rounds) * 1e3,
                "ms_on": statistics.median(one.on[0] for one in rounds) * 1e3,
                "ratio": told.ratio, "interval": told.interval, "cpu_ratio": cpu.ratio, "cpu_interval": cpu.interval,
                "rounds": len(rounds), "narrow": self.is_narrow(name), "verdict": verdict(told, aim), **aim._asdict()}


def ratios(rounds: Sequence[Round], what: int) -> list[float]:
    return [one.on[what] / one.off[what] for one in rounds]

