"""The programs of the corpus: what each expects of devsan, the thread it comes from, and its side of the holdout.

A program is one file. Its header says `# source:` (the public thread), `# expect: raises|silent|clean`, `# kinds:` of a
silent one and `# needs: N GPUs`; its lines are marked `# RAISE`, `# INNER` (as good as RAISE), `# ROOT` and `# ALSO` (where
the fix could as well stand).
"""

import collections
import functools
import hashlib
import pathlib
import re
from typing import Iterable, NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORPUS = ROOT / "corpus"
SIDES = ("train", "holdout")
HOLDOUT_SHARE = 0.2
RACE = "async-race"
SECOND_GPU = re.compile(r"""cuda:1\b|["']cuda["'], (index=)?1\b""")  # in a program that does not say what it needs
NO_THREAD = re.compile(r"none\b|own\b|clean control")
PUBLIC_THREAD = re.compile(r"([\w.-]+/[\w.-]+)\s*(?:/(?:issues|pull)/|PR)?\s*#?(\d+)")
TOKENS = re.compile(r"[A-Za-z_]\w*|\d+|\S")
SEEN = range(1, 100)  # numbers of programs that everybody has seen from the first day on: none of them measures anything
MEASURING = range(1001, 1101)  # numbers of a set that was written to measure with, and stays for that
SHINGLE = 6  # tokens
TWINS = 0.5  # share of shingles in common, from which on two programs count as one


class Program(NamedTuple):
    path: pathlib.Path
    expect: str
    kinds: tuple
    gpus: int
    thread: str
    raises: frozenset  # lines, as the others
    roots: frozenset
    also: frozenset  # ROOT lines among them

    @classmethod
    def read(cls, path: pathlib.Path) -> "Program":
        text = path.read_text()
        header = dict(re.findall(r"^# (source|expect|kinds|needs): (.+)$", text, re.M))

        def marked(*marks):
            return frozenset(number for number, line in enumerate(text.splitlines(), 1) if any(m in line for m in marks))

        needs = re.match(r"(\d+) GPUs", header.get("needs", ""))
        gpus = int(needs[1]) if needs else 2 if SECOND_GPU.search(text) else 1
        return cls(path, header.get("expect", "").split()[0], tuple(header.get("kinds", "").split("|")), gpus,
                   thread_of(header.get("source", ""), path.stem), marked("# RAISE", "# INNER"), marked("# ROOT"),
                   marked("# ROOT", "# ALSO"))

    def is_race(self) -> bool:
        return RACE in self.kinds


def thread_of(source: str, name: str) -> str:
    """A key of the public thread, however it is written; the program's own name where it has none."""
    if not source or NO_THREAD.match(source):
        return name
    found = PUBLIC_THREAD.search(re.sub(r"https?://github\.com/", "", source))
    return f"{found[1]}#{found[2]}".lower() if found else source.lower()


def programs(folders: Iterable[pathlib.Path], gpus: int | None = None) -> list[Program]:
    """Those that `gpus` devices suffice for, or all, sorted by their names."""
    paths = [path for folder in folders for path in folder.glob("[0-9]*.py")]
    found = (Program.read(path) for path in sorted(paths, key=lambda path: path.name)
             if re.search(r"^# expect: \w", path.read_text(), re.M))
    return [program for program in found if gpus is None or program.gpus <= gpus]


def corpus(*sides: str) -> list[Program]:
    return programs(CORPUS / side for side in sides or SIDES)


# ---- the holdout

def side_of(key: str) -> str:
    """By a hash of the thread: nobody chooses."""
    number = int.from_bytes(hashlib.sha256(f"holdout {key}".encode()).digest()[:8], "big") / 2**64
    return "holdout" if number < HOLDOUT_SHARE else "train"


def shingles(path: pathlib.Path) -> frozenset:
    """Runs of tokens of the code, without comments and blank lines."""
    code = "\n".join(line.split("#")[0] for line in path.read_text().splitlines())
    tokens = TOKENS.findall(code)
    return frozenset(tuple(tokens[i:i + SHINGLE]) for i in range(len(tokens) - SHINGLE + 1))


def clusters(found: list[Program]) -> list[list[Program]]:
    """Programs of one thread, and near-twins, together."""
    leader = list(range(len(found)))

    def lead(one: int) -> int:
        while leader[one] != one:
            one = leader[one]
        return one

    first_of: dict = {}
    for number, program in enumerate(found):
        leader[lead(number)] = lead(first_of.setdefault(program.thread, number))
    for one, other in twins([shingles(program.path) for program in found]):
        leader[lead(other)] = lead(one)
    grouped = collections.defaultdict(list)
    for number, program in enumerate(found):
        grouped[lead(number)].append(program)
    return list(grouped.values())


def twins(sets: list[frozenset]) -> Iterable[tuple[int, int]]:
    """Pairs that have TWINS of their shingles in common, found through the shingles that few have."""
    having = collections.defaultdict(list)
    for number, one in enumerate(sets):
        for shingle in one:
            having[shingle].append(number)
    shared: collections.Counter = collections.Counter()
    for numbers in having.values():
        if len(numbers) <= 20:
            shared.update((a, b) for i, a in enumerate(numbers) for b in numbers[i + 1:])
    for (a, b), count in shared.items():
        if count >= TWINS * max(1, min(len(sets[a]), len(sets[b]))):
            yield a, b


def side_of_cluster(cluster: list[Program]) -> str:
    """Of the oldest program's thread; the holdout where that was written to measure with."""
    oldest = min(cluster, key=lambda program: number_of(program.path))
    number = number_of(oldest.path)
    if number in SEEN:
        return "train"
    return "holdout" if number in MEASURING else side_of(oldest.thread)


def number_of(path: pathlib.Path) -> int:
    return int(re.match(r"\d+", path.name)[0])


@functools.cache
def sides() -> dict[str, str]:
    """{name of a program: the side that it belongs to}. A program follows the oldest one of its thread and near-twins."""
    belongs = {}
    for cluster in clusters(corpus()):
        side = side_of_cluster(cluster)
        belongs.update((program.path.name, side) for program in cluster)
    return belongs
