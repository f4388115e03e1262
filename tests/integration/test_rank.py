"""scripts/rank: which side of the holdout a program is on, and how reports are counted."""

import subprocess
import sys

import pytest

from harness import ROOT, need_simulated_devices

sys.path.insert(0, str(ROOT / "scripts"))

import corpus_fit  # noqa: E402
import corpus_programs  # noqa: E402
import corpus_repair  # noqa: E402
import corpus_score  # noqa: E402
from corpus_programs import Program, clusters, side_of, thread_of  # noqa: E402
from corpus_run import Run  # noqa: E402


def rank(*arguments):
    return subprocess.run([sys.executable, ROOT / "scripts/rank", *map(str, arguments)], capture_output=True, text=True)


def program_file(folder, name, source, body):
    path = folder / name
    path.write_text(f"# source: {source}\n# expect: raises\n{body}")
    return Program.read(path)


# ---- sides

def test_each_program_lies_on_the_side_of_its_thread():
    done = rank("check")
    assert done.returncode == 0, done.stdout


def test_a_fifth_of_many_threads_is_in_the_holdout():
    share = sum(side_of(f"owner/name#{number}") == "holdout" for number in range(5000)) / 5000
    assert 0.18 < share < 0.22


@pytest.mark.parametrize("source, thread", [
    ("https://github.com/Owner/name/issues/12", "owner/name#12"), ("Owner/name#12 (the answer)", "owner/name#12"),
    ("Owner/name PR#12 ('moves it')", "owner/name#12"), ("https://github.com/owner/name/pull/12", "owner/name#12"),
    ("own", "7_x"), ("none: a correct program", "7_x"), ("", "7_x"),
])
def test_a_thread_is_one_however_it_is_written(source, thread):
    assert thread_of(source, "7_x") == thread


LINES = "".join(f"value{n} = torch.ones({n}, device=place).sum()\n" for n in range(12))


def test_near_twins_and_programs_of_one_thread_count_as_one(tmp_path):
    one = program_file(tmp_path, "1_a.py", "a/b#1", LINES)
    twin = program_file(tmp_path, "2_b.py", "c/d#2", LINES.replace("value3", "other3"))
    same_thread = program_file(tmp_path, "3_c.py", "a/b#1", "import torch\n")
    other = program_file(tmp_path, "4_d.py", "e/f#3", "def run(model):\n    return [layer(model) for layer in model]\n" * 3)
    assert sorted(map(len, clusters([one, twin, same_thread, other]))) == [1, 3]


def test_a_new_program_goes_where_its_thread_is(tmp_path):
    known = next(program for program in corpus_programs.corpus("holdout") if "#" in program.thread)
    new = program_file(tmp_path, "9999_new.py", known.thread, "import torch\n")
    assert rank("side", new.path).stdout == f"{new.path}: corpus/holdout\n"


# ---- scores

BODY = "import torch\nx = torch.ones(2)  # ROOT\ny = x.clone()  # ALSO\nz = y.sum()\ny + g  # RAISE\n"  # lines 3 to 7


def finding(program, cause, alternatives=(), line=7, **more):
    def place(number):
        return {"file": str(program.path), "line": number, "confidence": "likely"}

    return {"kind": "device-mismatch", "raised": True, "severity": "error", "where": place(line),
            "root_cause": cause and place(cause), "alternatives": [place(one) for one in alternatives], **more}


@pytest.mark.parametrize("cause, alternatives, expected", [
    (4, [], "verdict first good three cited"),
    (5, [], "verdict good three"),
    (5, [4], "verdict good three cited"),
    (6, [7, 4], "verdict three cited"),
    (6, [7, 3, 4], "verdict cited"),
    (None, [], "verdict"),
])
def test_a_report_counts_by_the_line_that_it_gives_first_and_by_those_behind(tmp_path, cause, alternatives, expected):
    program = program_file(tmp_path, "1_a.py", "a/b#1", BODY)
    score = corpus_score.judge(program, Run(1, [finding(program, cause, alternatives)]))
    assert [name for name in corpus_score.COLUMNS if getattr(score, name)] == expected.split()


def test_a_finding_at_another_line_or_of_a_program_that_ended_well_is_no_verdict(tmp_path):
    program = program_file(tmp_path, "1_a.py", "a/b#1", BODY)
    assert not corpus_score.judge(program, Run(1, [finding(program, 4, line=6)])).verdict
    assert not corpus_score.judge(program, Run(0, [finding(program, 4)])).verdict
    assert not corpus_score.judge(program, None).verdict


def test_programs_of_a_holdout_are_counted_and_not_told_of_one_by_one(tmp_path, devsan, python):
    need_simulated_devices(python)
    for name in ("seen", "holdout"):
        (tmp_path / name).mkdir()
        program_file(tmp_path / name, "1_a.py", "a/b#1", "import torch\ntorch.ones(2)  # RAISE ROOT\n")
        done = rank("score", tmp_path / name, "--devsan", devsan, "--python", python)
        assert "0 (0.0%)" in done.stdout
        assert ("1_a.py" in done.stdout) == (name == "seen")


def test_programs_run_under_devsan_and_their_reports_are_counted(tmp_path, devsan, python):
    need_simulated_devices(python)
    (tmp_path / "1_a.py").write_text("# source: a/b#1\n# expect: raises\nimport torch\nx = torch.ones(2)  # ROOT\n"
                                     "x + torch.ones(2, device='cuda')  # RAISE\n")
    (tmp_path / "2_b.py").write_text("# source: own\n# expect: clean\nimport torch\ntorch.ones(2).sum()\n")
    done = rank("score", tmp_path, "--devsan", devsan, "--python", python, "--json", tmp_path / "counts.json")
    assert done.returncode == 0, done.stderr
    raises, clean = (line.split() for line in done.stdout.splitlines() if line.startswith(("  raises", "  clean")))
    assert raises[:4] == ["raises", "1", "1", "(100.0%)"] and clean[:4] == ["clean", "1", "1", "(100.0%)"]


# ---- repairs

def test_the_first_patch_is_that_of_the_cause_or_of_the_first_alternative_that_has_one(tmp_path):
    program = program_file(tmp_path, "1_a.py", "a/b#1", BODY)

    def first(*diffs):
        fixes = [diff if diff is None else {"patches": [{"diff": diff}] if diff else []} for diff in diffs]
        told = finding(program, 4, [5, 6], fix=fixes[0])
        told["alternatives"] = [{**one, "fix": fix} for one, fix in zip(told["alternatives"], fixes[1:])]
        patch = corpus_repair.first_patch(Run(1, [told]))
        return patch and patch["diff"]

    assert first("a", "b", "c") == "a"
    assert first("", "", "c") == "c"
    assert first(None, "b", None) == "b"
    assert first("", None, "") is None

def test_programs_are_repaired_by_the_patches_of_their_reports(tmp_path, devsan, python):
    need_simulated_devices(python)
    (tmp_path / "1_a.py").write_text("# source: a/b#1\n# expect: raises\nimport torch\nx = torch.ones(2)  # ROOT\n"
                                     "x + torch.ones(2, device='cuda')  # RAISE\n")
    (tmp_path / "2_b.py").write_text("# source: own\n# expect: raises\nimport torch\nx = torch.ones(2)  # ROOT\n"
                                     "torch.ones(2, device='cuda').add_(x)  # RAISE\nraise SystemExit(3)\n")
    done = rank("repair", tmp_path, "--devsan", devsan, "--python", python)
    assert done.returncode == 0, done.stderr
    assert "1 of 2 repaired (50.0%), 2 patched; at the cause 1 repaired, 2 patched" in done.stdout
    assert "2_b.py" in done.stdout and "ended 3" in done.stdout and "1_a.py" not in done.stdout


# ---- the ranking

def failure(tmp_path, lines):
    return corpus_fit.Failure(program_file(tmp_path, "1_a.py", "a/b#1", BODY), lines, None)


def test_candidates_come_in_the_order_of_their_scores_and_equal_ones_in_that_of_their_lines(tmp_path):
    assert corpus_fit.ordered(failure(tmp_path, [3, 4, 5, 6]), [0.5, 2.0, 0.5, 1.0]) == [4, 6, 3, 5]


def test_figures_count_marked_lines_that_come_first_among_three_or_at_all(tmp_path):
    lines = [3, 4, 5, 6]  # 4 is marked ROOT, 5 ALSO
    scores = [[0, 9, 1, 1], [9, 0, 10, 1], [9, 0, 1, 8], [9, -1, 0, 8]]
    some = [failure(tmp_path, lines) for _ in scores]
    assert corpus_fit.figures(some, scores) == (4, 1, 2, 4, 4)
    assert corpus_fit.figures([failure(tmp_path, [3, 6])], [[1, 0]]) == (1, 0, 0, 0, 0)


def test_a_fitted_tree_is_written_as_splits_that_lead_on_and_leaves(tmp_path):
    leaf = [{"leaf_value": 0.25}, {"leaf_value": -2.0}, {"leaf_value": 1.0}]
    inner = {"split_feature": 0, "threshold": 3.0, "left_child": leaf[1], "right_child": leaf[2]}
    root = {"split_feature": 2, "threshold": 0.5, "left_child": leaf[0], "right_child": inner}
    tree = corpus_fit.tree_of(root, 2)
    assert tree == {"splits": [[2, 0.5, -1, 1], [0, 3.0, -2, -3]], "leaves": [0.5, -4.0, 2.0]}
