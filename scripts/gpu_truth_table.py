"""The table of scripts/gpu_truth: a file of text with one line for each case, and what two of them agree on.

    # gpu_truth/1
    # torch: 2.13.0+cu130                                     further lines of the header
    operator <tab> sample <tab> operand <tab> change <tab> outcome, sorted

A sample is told by its tensors and their numbers of dimensions; for what is called, moved and answered see
scripts/gpu_truth_worker.py.
"""

import collections
import json

from op_workers import stale, unlisted

FORMAT = "gpu_truth/1"

# In percent of the cases in which an operand was moved.
GOALS = {"raise or pass": 100.0, "message": 99.0}

Case = collections.namedtuple("Case", "op sample operand change")


class Table:
    """`facts` is the header, `outcomes` {Case: what happened}."""

    def __init__(self, facts, outcomes):
        self.facts = facts
        self.outcomes = outcomes

    @classmethod
    def read(cls, path):
        lines = path.read_text().splitlines()
        if lines[:1] != [f"# {FORMAT}"]:
            raise ValueError(f"{path} is no table of {FORMAT}")
        facts = {key: json.loads(value) for key, _, value in
                 (line[2:].partition(": ") for line in lines[1:] if line.startswith("# "))}
        cells = (line.split("\t") for line in lines if not line.startswith("#"))
        return cls(facts, {Case(*names): outcome for *names, outcome in cells})

    def write(self, path):
        lines = [f"# {FORMAT}", *(f"# {key}: {json.dumps(value)}" for key, value in self.facts.items()),
                 *("\t".join((*case, self.outcomes[case])) for case in sorted(self.outcomes))]
        path.write_text("\n".join(lines) + "\n")

    def operators(self):
        return {case.op for case in self.outcomes}

    def only(self, operators):
        return Table(self.facts, {case: told for case, told in self.outcomes.items() if case.op in operators})

    def minor_version(self):
        return ".".join(self.facts["torch"].split(".")[:2])

    def title(self):
        what = "simulated devices" if self.facts["simulated"] else " and ".join(self.facts["devices"])
        return f"torch {self.facts['torch']} on {what} ({self.facts['date']})"


def is_control(case):
    """Everything on one device, as CUDA's kernels want it."""
    return case.change in ("-", "cuda:0", "cuda:0()", "cuda:0(1)")


def passes(outcome):
    return outcome.startswith("pass ")


class Comparison:
    """Of the cases that two tables both have; for tables of one minor version of torch that must be all of them."""

    def __init__(self, truth, other):
        self.truth, self.other = truth, other
        self.same_version = truth.minor_version() == other.minor_version()
        operators = truth.operators() & other.operators()
        self.truth_only = truth.operators() - operators
        ours, theirs = truth.only(operators).outcomes, other.only(operators).outcomes
        self.cases = sorted(ours.keys() & theirs.keys())
        self.lone = sorted(ours.keys() ^ theirs.keys())

    def agreement(self, cases):
        """{goal: (how many agree, of how many)}"""
        pairs = [(self.truth.outcomes[case], self.other.outcomes[case]) for case in cases]
        return {"raise or pass": (sum(passes(one) == passes(two) for one, two in pairs), len(pairs)),
                "message": (sum(one == two for one, two in pairs), len(pairs))}

    def found(self):
        """{(operator, operand): {change: what differs}}, as the list of exceptions names them."""
        found = collections.defaultdict(dict)
        for case in self.cases:
            one, two = self.truth.outcomes[case], self.other.outcomes[case]
            if one != two:
                found[case.op, case.operand][case.change] = f"{case.sample} | {one} | here: {two}"
        for case in self.lone if self.same_version else ():
            where = "only in the table" if case in self.truth.outcomes else "not in the table"
            found[case.op, case.operand][case.change] = f"{case.sample} | {where}"
        return found

    def stale(self, listed):
        compared = collections.defaultdict(set)
        for case in self.cases:
            compared[case.op, case.operand].add(case.change)
        return stale(self.found(), listed, lambda op, operand: compared[op, operand])

    def report(self, listed, goals):
        """(lines, whether it is as it should be); `goals` says whether the goals are to be met, which are a whole table's"""
        lines = [f"{self.truth.title()}, against {self.other.title()}"]
        if not self.same_version:
            lines.append("of two versions of torch: compared are the operators and samples that both have "
                         f"({len(self.truth_only)} operators and {len(self.lone)} cases have only one)")
        if not self.cases:
            return [*lines, "they have no case in common"], False
        moved, controls = ([case for case in self.cases if is_control(case) == kind] for kind in (False, True))
        lines.append(f"{len({case.op for case in self.cases})} operators, {len(moved)} cases of a moved operand: "
                     + in_words(self.agreement(moved)))
        lines.append(f"{len(controls)} cases with everything on one device: {in_words(self.agreement(controls))}")
        missed = [f"below the goal of {GOALS[goal]:g} %: {goal}" for goal in GOALS if goals
                  and percent(*self.agreement(self.counted(moved, goal, listed))[goal]) < GOALS[goal]]
        found = self.found()
        told = [f"listed: {op} | {operand} | {change} | {difference}" for (op, operand), changes in sorted(found.items())
                for change, difference in sorted(changes.items()) if change in listed.get((op, operand), ())]
        wrong = unlisted(found, listed) + (self.stale(listed) if self.same_version else [])
        return [*lines, *missed, *told, *wrong], not missed and not wrong

    @staticmethod
    def counted(cases, goal, listed):
        """Nothing less than all agrees on what raises, but for what has a reason; of other words there are to be few."""
        if goal == "message":
            return cases
        return [case for case in cases if case.change not in listed.get((case.op, case.operand), ())]


def percent(part, whole):
    return 100 * part / whole if whole else 100.0


def in_words(agreement):
    return ", ".join(f"{goal} {percent(part, whole):.3f} % ({whole - part} differ)"
                     for goal, (part, whole) in agreement.items())
