"""The table of scripts/gpu_truth: a file of text with one line for each case, and what two of them agree on.

    # gpu_truth/1
    # torch: 2.13.0+cu130                                     further lines of the header
    operator <tab> sample <tab> operand <tab> change <tab> outcome, sorted

A sample is told by its tensors and their numbers of dimensions; for what is called, moved and answered see
scripts/gpu_truth_worker.py. A file whose name ends in .gz is compressed.
"""

import collections
import gzip
import json

from op_workers import stale, unlisted

FORMAT = "gpu_truth/1"

# In percent of all cases but those that are listed with their reason.
GOALS = {"raise or pass": 100.0, "message": 99.0}

Case = collections.namedtuple("Case", "op sample operand change")


# What PyTorch answers otherwise since `release`: to these cases it answers with words that begin with `words`.
Change = collections.namedtuple("Change", "op operand changes release words")


def contents(path):
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def changes_of_releases(path):
    """From lines `operator | operand | changes | release | words`."""
    lines = (line for line in path.read_text().splitlines() if line.strip() and not line.startswith("#"))
    cells = ([cell.strip() for cell in line.split("|", 4)] for line in lines)
    return [Change(op, operand, frozenset(changes.split()), tuple(map(int, release.split("."))), words)
            for op, operand, changes, release, words in cells]


class Table:
    """`facts` is the header, `outcomes` {Case: what happened}."""

    def __init__(self, facts, outcomes):
        self.facts = facts
        self.outcomes = outcomes

    @classmethod
    def read(cls, path):
        lines = contents(path).splitlines()
        if lines[:1] != [f"# {FORMAT}"]:
            raise ValueError(f"{path} is no table of {FORMAT}")
        facts = {key: json.loads(value) for key, _, value in
                 (line[2:].partition(": ") for line in lines[1:] if line.startswith("# "))}
        cells = (line.split("\t") for line in lines if not line.startswith("#"))
        return cls(facts, {Case(*names): outcome for *names, outcome in cells})

    def write(self, path):
        lines = [f"# {FORMAT}", *(f"# {key}: {json.dumps(value)}" for key, value in self.facts.items()),
                 *("\t".join((*case, self.outcomes[case])) for case in sorted(self.outcomes))]
        text = ("\n".join(lines) + "\n").encode()
        path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)

    def operators(self):
        return {case.op for case in self.outcomes}

    def only(self, operators):
        return Table(self.facts, {case: told for case, told in self.outcomes.items() if case.op in operators})

    def release(self):
        return tuple(int(number) for number in self.facts["torch"].split(".")[:2])

    def title(self):
        what = "simulated devices" if self.facts["simulated"] else " and ".join(self.facts["devices"])
        return f"torch {self.facts['torch']} on {what} ({self.facts['date']})"


def is_control(case):
    """Everything on one device, as CUDA's kernels want it."""
    return case.change in ("-", "cuda:0", "cuda:0()", "cuda:0(1)")


def passes(outcome):
    return outcome.startswith("pass ")


class Comparison:
    """Of the cases that two tables both have; for tables of one release of torch that must be all of them. `changes` is
    what PyTorch's releases answer differently."""

    def __init__(self, truth, other, changes=()):
        self.truth, self.other = truth, other
        self.releases = truth.release(), other.release()
        self.same_release = truth.release() == other.release()
        self.changes = [change for change in changes if min(self.releases) < change.release <= max(self.releases)]
        operators = truth.operators() & other.operators()
        self.lone_operators = sorted(truth.operators() - operators)
        ours, theirs = truth.only(operators).outcomes, other.only(operators).outcomes
        self.lone = sorted(ours.keys() ^ theirs.keys())
        both = sorted(ours.keys() & theirs.keys())
        self.by_release = {case: change for case in both for change in self.changes if self.is_change(case, change)}
        self.cases = [case for case in both if case not in self.by_release]

    def is_change(self, case, change):
        newer = max(self.truth, self.other, key=Table.release)
        return ((case.op, case.operand) == (change.op, change.operand) and case.change in change.changes
                and newer.outcomes[case].startswith(change.words))

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
        for case in self.lone if self.same_release else ():
            where = "only in the table" if case in self.truth.outcomes else "not in the table"
            found[case.op, case.operand][case.change] = f"{case.sample} | {where}"
        return found

    def stale(self, listed):
        compared = collections.defaultdict(set)
        for case in self.cases:
            compared[case.op, case.operand].add(case.change)
        return stale(self.found(), listed, lambda op, operand: compared[op, operand])

    def stale_changes(self):
        compared = self.truth.operators() & self.other.operators()
        unseen = [change for change in self.changes if change.op in compared and change not in self.by_release.values()]
        return [f"a change of release that no case shows: {change.op} | {change.operand} | "
                + " ".join(sorted(change.changes)) for change in unseen]

    def told_of_releases(self):
        if self.same_release:
            return []
        lone = collections.Counter(f"{case.op} ({'the table' if case in self.truth.outcomes else 'here'})"
                                   for case in self.lone)
        lines = ["of two releases of torch: compared are the operators and samples that both have "
                 f"({len(self.lone_operators)} operators and {len(self.lone)} cases have only one); "
                 f"{len(self.by_release)} cases are answered otherwise since a release between them"]
        lines += [f"operators of the table alone: {' '.join(self.lone_operators)}"] if self.lone_operators else []
        counts = ", ".join(f"{name}: {count}" for name, count in sorted(lone.items()))
        lines += [f"cases of one alone: {counts}"] if lone else []
        return lines

    def report(self, listed, goals):
        """(lines, whether it is as it should be); `goals` says whether the goals, a whole table's, are to be met"""
        lines = [f"{self.truth.title()}, against {self.other.title()}", *self.told_of_releases()]
        if not self.cases:
            return [*lines, "they have no case in common"], False
        moved, controls = ([case for case in self.cases if is_control(case) == kind] for kind in (False, True))
        lines.append(f"{len({case.op for case in self.cases})} operators, {len(moved)} cases of a moved operand: "
                     + in_words(self.agreement(moved)))
        lines.append(f"{len(controls)} cases with everything on one device: {in_words(self.agreement(controls))}")
        lines.append(f"{len(self.cases)} cases in all: {in_words(self.agreement(self.cases))}")
        missed = [f"below the goal of {GOALS[goal]:g} %: {goal}" for goal in GOALS if goals
                  and percent(*self.agreement(self.counted(goal, listed))[goal]) < GOALS[goal]]
        found = self.found()
        told = [f"listed: {op} | {operand} | {change} | {difference}" for (op, operand), changes in sorted(found.items())
                for change, difference in sorted(changes.items()) if change in listed.get((op, operand), ())]
        wrong = unlisted(found, listed) + self.stale(listed) + self.stale_changes()
        return [*lines, *missed, *told, *wrong], not missed and not wrong

    def counted(self, goal, listed):
        """Nothing less than all agrees on what raises, but for what has a reason; of other words there are to be few."""
        if goal == "message":
            return self.cases
        return [case for case in self.cases if case.change not in listed.get((case.op, case.operand), ())]


def percent(part, whole):
    return 100 * part / whole if whole else 100.0


def in_words(agreement):
    return ", ".join(f"{goal} {percent(part, whole):.3f} % ({whole - part} differ)"
                     for goal, (part, whole) in agreement.items())
