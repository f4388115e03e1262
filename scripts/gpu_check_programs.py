"""The programs of scripts/gpu_check: which of them run, each with and without devsan, and how the findings are judged."""

import collections
import concurrent.futures
import hashlib
import re
import shutil
import sys

import corpus_run
from corpus_programs import CORPUS, SIDES, programs
from gpu_check_run import LEFT_OUT, last_line

# Of 60: what most programs are for is refused operators, but what is silent and what is correct differs more.
SHARES = {"raises": 0.6, "silent": 0.2, "clean": 0.2}


def spread(found, count):
    """A fixed choice: of each kind of expectation those whose names have the smallest digests. Races run by themselves."""
    by_kind = collections.defaultdict(list)
    for program in found:
        if not program.is_race():
            by_kind[program.expect].append(program)
    chosen = []
    for kind, share in SHARES.items():
        ordered = sorted(by_kind[kind], key=lambda one: hashlib.sha256(one.path.name.encode()).hexdigest())
        chosen += ordered[:max(1, round(count * share))]
    return sorted(chosen, key=lambda one: one.path.name)


# ---- running

class Side:
    """The same programs in one run, with or without devsan: what each did, and where it wrote."""

    def __init__(self, check, name, traced):
        self.check = check
        side = "traced" if traced else "plain"
        self.folder = check.work / "programs" / name / side
        self.out = check.work / "traces" / name / side
        self.traced = traced
        self.ended = {}

    def run(self, chosen, jobs, seconds):
        for folder in (self.folder, self.out):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        command = [corpus_run.FORKS, jobs, max(1.0, seconds - 10), self.folder, *(program.path for program in chosen)]
        command = self.check.traced(self.out, *command) if self.traced else self.check.plain(*command)
        done = self.check.run(command, seconds, env=self.check.environment())
        self.ended = corpus_run.ended_programs(done.stdout)
        return done

    def outcome(self, program):
        """What must be the same on both sides; None for a program that the time did not suffice for."""
        told = self.ended.get(program.path.name)
        if told is None or told["status"] is None:
            return None
        out, err = ((self.folder / f"{program.path.name}{suffix}").read_text(errors="replace")
                    for suffix in (".out", ".err"))
        return told["status"], out, without_addresses(err)


def without_addresses(text):
    """Minus what differs between any two runs."""
    return re.sub(r"0x[0-9a-f]{6,}", "0x…", re.sub(r"\[\w?\d+[ :\d.-]+\d+ \S+\]", "[…]", text))


def run_both(check, name, chosen, most):
    """Rows of the table, in the order of the programs."""
    plain, traced = Side(check, name, False), Side(check, name, True)
    sides, seconds = 2, check.bounded(most)
    if check.options.sim:  # a machine without a GPU has fewer processors: one side after the other
        sides, seconds = 1, seconds / 2
    jobs = max(1, min(6, (check.results["machine"].get("cpus") or 2) // 2 - 1))
    with concurrent.futures.ThreadPoolExecutor(sides) as pool:
        ends = list(pool.map(lambda side: side.run(chosen, jobs, seconds), (traced, plain)))
    if not traced.ended or not plain.ended:
        raise RuntimeError(f"no program ran: {'; '.join(last_line(done.stderr) for done in ends)}")
    findings = findings_by_process(check, traced.out)
    return [judged(program, plain, traced, findings) for program in chosen]


def findings_by_process(check, out):
    """{pid of a program: what was told of it and of the processes that it started}; None when there is no report."""
    report = check.report(out)
    return None if report is None else corpus_run.findings_by_process(report)


# ---- judging

def judged(program, plain, traced, findings):
    row = {"program": program.path.name, "expect": program.expect}
    with_devsan, without = traced.outcome(program), plain.outcome(program)
    if with_devsan is None or without is None:
        return {**row, "verdict": "no time"}
    compared = slice(1) if program.is_race() else slice(None)  # what a race leaves behind is anybody's guess
    row |= {"unchanged": with_devsan[compared] == without[compared], "status": with_devsan[0]}
    if findings is None:
        return {**row, "verdict": "wrong", "told": "no report"}
    loud = [one for one in findings.get(traced.ended[program.path.name]["pid"], []) if one["severity"] != "note"]
    told = [(one["kind"], (one["where"] or {}).get("line")) for one in loud]
    good, cause = judge(program, with_devsan[0], loud)
    return {**row, "verdict": "right" if good else "wrong", "root": cause, "told": told}


def judge(program, status, loud):
    """(whether it is as expected, whether the line to change is the cause; None where there is none to tell)"""
    if program.expect == "clean":
        return status == 0 and not loud, None
    wanted = ("device-mismatch",) if program.expect == "raises" else program.kinds
    fits = [one for one in loud if one["kind"] in wanted and (one["where"] or {}).get("line") in program.raises]
    good = (status != 0) == (program.expect == "raises") and bool(fits)
    if not good:
        return False, None
    return True, any((one["root_cause"] or {}).get("line") in program.roots for one in fits)


def summary(rows):
    """(whether all is well, the rows in words)"""
    count = collections.Counter(row["verdict"] for row in rows)
    causes = [row["root"] for row in rows if row.get("root") is not None]
    changed = [row["program"] for row in rows if row.get("unchanged") is False]
    words = f"{count['right']} of {len(rows)} as expected"
    if causes:
        words += f", the line to change in {sum(causes)} of {len(causes)}"
    words += f", output changed in {len(changed)}" + (f" ({', '.join(changed)})" if changed else "")
    wrong = [row["program"] for row in rows if row["verdict"] == "wrong"]
    words += f"; not as expected: {', '.join(wrong)}" if wrong else ""
    words += f"; {LEFT_OUT}: {count['no time']}, the time was over" if count["no time"] else ""
    return bool(count["right"]) and not wrong and not changed, words


def run_races(check):
    return run_set(check, "races", [one for one in all_of(check) if one.is_race()], 60)


def run_spread(check):
    return run_set(check, "spread", spread(all_of(check), check.options.spread), 100)


def run_set(check, name, chosen, most):
    rows = run_both(check, name, chosen, most)
    check.results["programs"] += rows
    return summary(rows)


def all_of(check):
    return programs([*(CORPUS / side for side in SIDES), *check.options.programs], check.results["machine"].get("gpus", 1))


if __name__ == "__main__":
    sys.exit("this file is a part of scripts/gpu_check")
