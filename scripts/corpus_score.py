"""What a report is worth: whether it has the refused line, the line to change first, among the first three, or at all."""

from typing import NamedTuple

from corpus_programs import Program
from corpus_run import Run

COLUMNS = ("verdict", "first", "good", "three", "cited")


class Score(NamedTuple):
    program: Program
    verdict: bool
    first: bool
    good: bool
    three: bool
    cited: bool
    told: str

    def missed(self) -> bool:
        return not (self.verdict and self.good)

    @staticmethod
    def counts(scores: list["Score"]) -> dict:
        return {"programs": len(scores), **{name: sum(getattr(one, name) for one in scores) for name in COLUMNS}}


def judge(program: Program, run: Run | None) -> Score:
    if run is None or run.status is None:
        return Score(program, False, False, False, False, False, f"{program.path.name}: it did not end")
    loud = [one for one in run.findings if one["severity"] != "note"]
    if program.expect == "clean":
        quiet = run.status == 0 and not loud
        told = "" if quiet else f"{program.path.name}: ended {run.status}, {kinds_and_lines(loud, program)}"
        return Score(program, quiet, quiet, quiet, quiet, quiet, told)
    mine = [one for one in loud if is_wanted(one, program)]
    verdict = bool(mine) and (run.status != 0) == (program.expect == "raises")
    causes = [line_of(cause, program) for cause in causes_of(mine[0])] if mine else []
    lines = set().union(*(lines_in(one, program) for one in mine))
    told = (f"{program.path.name}: root {sorted(program.roots)}, raise {sorted(program.raises)}; "
            f"told {kinds_and_lines(loud, program)}")
    first = set(causes[:1])
    return Score(program, verdict, bool(program.roots & first), bool(program.also & first),
                 bool(program.also & set(causes[:3])), bool(program.roots & lines), told)


def is_wanted(finding: dict, program: Program) -> bool:
    if program.expect == "raises":
        return (finding["kind"] == "device-mismatch" and finding["raised"]
                and line_of(finding["where"], program) in program.raises)
    lines = {line_of(finding["where"], program), line_of(finding.get("root_cause"), program)}
    return finding["kind"] in program.kinds and bool(lines & (program.roots | program.raises))


def causes_of(finding: dict) -> list:
    return [finding.get("root_cause"), *(finding.get("alternatives") or [])]


def line_of(place: dict | None, program: Program) -> int | None:
    return place["line"] if place and str(place.get("file", "")).endswith(program.path.name) else None


def lines_in(node, program: Program) -> set:
    """All lines of the program that a finding names."""
    if isinstance(node, dict):
        here = {line_of(node, program)} if "line" in node else set()
        return here.union(*(lines_in(value, program) for value in node.values()))
    return set().union(*(lines_in(value, program) for value in node)) if isinstance(node, list) else set()


def kinds_and_lines(findings: list, program: Program) -> list:
    return [(one["kind"], line_of(one["where"], program), line_of(one.get("root_cause"), program)) for one in findings]


def table(name: str, scores: list[Score]) -> str:
    """Counts for each kind of program."""
    lines = [f"{name:10}{'programs':>9}" + "".join(f"{column:>14}" for column in COLUMNS)]
    for expect in ("raises", "silent", "clean"):
        some = [one for one in scores if one.program.expect == expect]
        if some:
            counts = Score.counts(some)
            cells = (f"{counts[column]} ({counts[column] / len(some):.1%})" for column in COLUMNS)
            lines.append(f"  {expect:8}{len(some):9}" + "".join(f"{cell:>14}" for cell in cells))
    return "\n".join(lines)
