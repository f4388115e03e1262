"""Fits the ranking of candidate lines to the marks of programs, and writes it as the report reads it.

The model is an average of gradient boosted trees on the ranking loss LambdaMART: of one failure's candidates those marked
ROOT come first, those marked ALSO behind them. It needs LightGBM and NumPy, at development time alone.
"""

import hashlib
import json
import pathlib
import sys
from typing import NamedTuple

from corpus_programs import Program
from corpus_run import Candidates

FOLDS = 5
FEATURES = 100  # that are kept, the ones that split most
SEEDS = 3  # models that are averaged
BLIND = 1001  # the number from which on programs are written as real code is: they count twice
LIKELY = 0.9  # of the causes that a report calls likely are to be right, on threads that it was not fitted to
FEWEST_LIKELY = 20  # causes that this is measured on

PARAMETERS = {"objective": "lambdarank", "n_estimators": 200, "num_leaves": 15, "learning_rate": 0.05,
              "min_child_samples": 8, "colsample_bytree": 0.3, "reg_lambda": 2, "subsample": 0.8, "subsample_freq": 1,
              "lambdarank_truncation_level": 5, "verbose": -1, "n_jobs": 2, "deterministic": True}


class Failure(NamedTuple):
    program: Program
    lines: list
    table: "numpy.ndarray"  # candidates by features

    def labels(self):
        return [(line in self.program.also) + (line in self.program.roots) for line in self.lines]

    def weight(self) -> int:
        return 2 if int(self.program.path.name.split("_")[0]) >= BLIND else 1


def imports():
    try:
        import lightgbm
        import numpy
    except ImportError as error:
        sys.exit(f"rank: {error.name} is needed to fit: pip install lightgbm numpy")
    return lightgbm, numpy


def feature_names(found: dict[pathlib.Path, Candidates]) -> list[str]:
    return sorted({name for one in found.values() for features in one.lines.values() for name in features})


def failures(programs: list[Program], found: dict[pathlib.Path, Candidates], names: list[str]) -> list[Failure]:
    _, numpy = imports()
    result = []
    for program in programs:
        if program.path not in found:
            continue
        lines = sorted(found[program.path].lines)
        rows = [[found[program.path].lines[line].get(name, 0.0) for name in names] for line in lines]
        result.append(Failure(program, lines, numpy.array(rows, dtype=numpy.float32).reshape(len(lines), len(names))))
    return result


def only(some: list[Failure], columns: list[int]) -> list[Failure]:
    return [one._replace(table=one.table[:, columns]) for one in some]


def fit(some: list[Failure], seeds: int = SEEDS) -> list:
    lightgbm, numpy = imports()
    usable = [one for one in some if any(one.labels()) for _ in range(one.weight())]
    table = numpy.concatenate([one.table for one in usable])
    labels = [label for one in usable for label in one.labels()]
    groups = [len(one.lines) for one in usable]
    return [lightgbm.LGBMRanker(**PARAMETERS, random_state=seed).fit(table, labels, group=groups)
            for seed in range(seeds)]


def scores(models: list, one: Failure):
    return sum(model.predict(one.table) for model in models) / len(models) if one.lines else []


def fold_of(one: Failure) -> int:
    return int(hashlib.sha256(one.program.thread.encode()).hexdigest(), 16) % FOLDS


def cross_validated(some: list[Failure], seeds: int = SEEDS) -> list:
    """The scores of each failure's candidates by a model that was fitted to programs of other threads."""
    models = [fit([one for one in some if fold_of(one) != fold], seeds) for fold in range(FOLDS)]
    return [scores(models[fold_of(one)], one) for one in some]


def columns_that_split(some: list[Failure], count: int) -> list[int]:
    _, numpy = imports()
    models = fit(some, 2)
    gains = sum(model.booster_.feature_importance("gain") for model in models)
    return sorted(int(column) for column in numpy.argsort(-gains)[:count])


# ---- figures

class Figures(NamedTuple):
    failures: int
    first: int
    good: int
    three: int
    candidates: int  # among which a marked line is

    def text(self) -> str:
        shares = ", ".join(f"{name} {value} ({value / max(self.failures, 1):.1%})"
                           for name, value in zip(self._fields[1:], self[1:]))
        return f"{self.failures} failures: {shares}"


def ordered(one: Failure, values) -> list[int]:
    """The lines, the best first."""
    return [line for _, line in sorted(zip(values, one.lines), key=lambda pair: (-pair[0], pair[1]))]


def figures(some: list[Failure], values: list) -> Figures:
    best = [(one.program, ordered(one, value)) for one, value in zip(some, values)]
    return Figures(len(best), sum(bool(set(lines[:1]) & program.roots) for program, lines in best),
                   sum(bool(set(lines[:1]) & program.also) for program, lines in best),
                   sum(bool(set(lines[:3]) & program.also) for program, lines in best),
                   sum(bool(set(lines) & program.also) for program, lines in best))


def share_of_first(values) -> float:
    _, numpy = imports()
    shares = numpy.exp(values - numpy.max(values))
    return float(numpy.max(shares) / numpy.sum(shares))


def likely_from(some: list[Failure], values: list) -> tuple[float, float, float]:
    """The share from which on the first candidate is right in LIKELY; how many get there, and how many are right."""
    judged = sorted(((share_of_first(value), ordered(one, value)[0] in one.program.also)
                     for one, value in zip(some, values) if one.lines), reverse=True)
    for count in range(len(judged), FEWEST_LIKELY - 1, -1):
        right = sum(good for _, good in judged[:count]) / count
        if right >= LIKELY:
            return judged[count - 1][0], count / len(judged), right
    return 1.0, 0.0, 0.0


# ---- the model as data

def trees_of(model, scale: float) -> list[dict]:
    return [tree_of(one["tree_structure"], scale) for one in model.booster_.dump_model()["tree_info"]]


def tree_of(root: dict, scale: float) -> dict:
    splits, leaves = [], []

    def walk(node: dict) -> int:
        if "split_feature" not in node:
            leaves.append(float(f"{node['leaf_value'] * scale:.5g}"))
            return -len(leaves)
        number = len(splits)
        splits.append(None)
        below, above = walk(node["left_child"]), walk(node["right_child"])
        splits[number] = [node["split_feature"], float(f"{node['threshold']:.6g}"), below, above]
        return number

    walk(root)
    return {"splits": splits, "leaves": leaves}


def write(path: pathlib.Path, models: list, names: list[str], likely: float) -> None:
    trees = [tree for model in models for tree in trees_of(model, 1 / len(models))]
    lines = ",\n".join(json.dumps(tree, separators=(",", ":")) for tree in trees)
    head = {"schema": "devsan-ranking/1", "likely": float(f"{likely:.4g}"), "features": names}
    path.write_text(json.dumps(head, indent=1)[:-2] + f',\n "trees": [\n{lines}\n]}}\n')
