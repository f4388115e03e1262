"""The truth table of PyTorch's device checks: it is written, and the simulation is held against it.

Where no GPU is, simulated devices stand for it. Tables of real ones lie in tests/golden/gpu_truth.
"""

import gzip
import hashlib
import re
import subprocess

import pytest

from harness import ROOT, Runner

TABLES = sorted((ROOT / "tests/golden/gpu_truth").glob("*.tsv*"))

# One operator at least for each way in which CUDA's checks differ from what a CPU kernel would say: names of wrappers,
# kernels that are not there, own kernels over composite ones, meta functions, rules, shapes, words, assertions on the
# device.
MECHANISMS = """
_batch_norm_with_update _chunk_cat _segment_reduce.lengths addcmul addr bernoulli cat cumsum floor_divide histogram
index_fill index_put jiterator_unary lerp masked_fill max.reduction_no_dim mode mv narrow_copy nn.functional.batch_norm
nn.functional.conv2d nn.functional.conv3d nn.functional.ctc_loss nn.functional.max_pool3d nn.functional.max_unpool2d
nn.functional.mse_loss nn.functional.nll_loss nn.functional.rms_norm nn.functional.scaled_dot_product_attention
rand_like searchsorted sparse.mm.reduce trace where
""".split()
# Of the others every so many, by a hash of the name.
SPREAD = 12

OPERATORS = "bernoulli|cat|cross|mv"

# Found in the place of expecttest, which PyTorch's list of operators imports after torch: two operators that end their
# process, or leave the device unusable, for one operand that is a number on the CPU.
SPOILED = '''
import os, unittest, torch
TestCase = unittest.TestCase
real_cross, real_mv, real_synchronize = torch.cross, torch.mv, torch.cuda.synchronize
broken = []

def is_number(operand):
    return operand.is_cpu and operand.dim() == 0

def cross(first, second, **options):
    if is_number(second):
        os.abort()
    return real_cross(first, second, **options)

def mv(first, second, **options):
    if is_number(second):
        broken.append(second)
    return real_mv(first, second, **options)

def synchronize(device=None):
    if broken:
        raise torch.AcceleratorError("CUDA error: device-side assert triggered\\nCompile with …")
    return real_synchronize(device)

torch.cross, torch.mv, torch.cuda.synchronize = cross, mv, synchronize
'''


class Script:
    def __init__(self, devsan, python, scratch):
        self.devsan, self.python, self.scratch = devsan, python, scratch
        self.environment = Runner(devsan, python, scratch).environment

    def __call__(self, *arguments, sim=0, path=None):
        prefix = [self.devsan, "run", "--sim", sim, "--quiet", "--out", self.scratch / "traces", "--"] if sim else []
        command = [*prefix, self.python, ROOT / "scripts/gpu_truth", "--python", self.python, "--devsan", self.devsan,
                   *arguments]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env=self.environment({"PYTHONPATH": str(path)} if path else {}))


@pytest.fixture(scope="module")
def script(devsan, python, tmp_path_factory):
    return Script(devsan, python, tmp_path_factory.mktemp("truth"))


@pytest.fixture(scope="module")
def table(script):
    """A table of simulated devices, two samples of some operators."""
    path = script.scratch / "table.tsv"
    done = script("--ops", OPERATORS, "--samples", 2, "--jobs", 1, "--out", path, sim=2)
    assert done.returncode == 0, done.stderr
    return path


def outcomes(path):
    lines = [line.split("\t") for line in path.read_text().splitlines() if not line.startswith("#")]
    return {tuple(names): outcome for *names, outcome in lines}


def altered(table, scratch, case, outcome):
    """A copy of a table in which one case ends otherwise."""
    lines = table.read_text().splitlines()
    at = [index for index, line in enumerate(lines) if line.startswith("\t".join(case) + "\t")]
    assert len(at) == 1
    lines[at[0]] = "\t".join((*case, outcome))
    path = scratch / "altered.tsv"
    path.write_text("\n".join(lines) + "\n")
    return path


MATRIX = "mv", "input:2 args[0]:1"


def test_every_operand_is_moved_in_turn(table):
    found = outcomes(table)
    wrapper = "RuntimeError: Expected all tensors to be on the same device, but got {} (when checking argument in method {})"
    assert found[*MATRIX, "all", "cuda:0"] == "pass cuda:0"
    assert found[*MATRIX, "input", "cpu"] == wrapper.format(
        "mat is on cpu, different from other tensors on cuda:0", "wrapper_CUDA_addmv_")
    assert found[*MATRIX, "args[0]", "cuda:1"] == wrapper.format(
        "mat is on cuda:0, different from other tensors on cuda:1", "wrapper_CUDA_addmv_")
    assert found[*MATRIX, "args[0]", "cuda:0()"].startswith("RuntimeError: vector + matrix @ vector expected")
    assert {change for op, sample, operand, change in found if (op, sample, operand) == (*MATRIX, "args[0]")} == {
        "cuda:0()", "cuda:0(1)", "cpu", "cpu()", "cpu(1)", "cuda:1", "cuda:1()"}
    assert {operand for op, _, operand, _ in found if op == "mv"} == {"all", "input", "args[0]", "out"}
    assert {"input[0]", "input[1]"} <= {operand for op, _, operand, _ in found if op == "cat"}
    generators = {change: outcome for (op, _, operand, change), outcome in found.items()
                  if (op, operand) == ("bernoulli", "generator")}
    assert generators == {"cuda:0": "pass cuda:0", "cuda:1": "pass cuda:0",
                          "cpu": "RuntimeError: Expected a 'cuda' device type for generator but found 'cpu'"}


def test_the_simulation_agrees_with_a_table_of_itself(script, table):
    done = script("--compare", table, "--jobs", 1)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "raise or pass 100.000 % (0 differ), message 100.000 % (0 differ)" in done.stdout
    assert f"{len({case[0] for case in outcomes(table)})} operators, " in done.stdout and "not listed" not in done.stdout


@pytest.mark.parametrize("outcome, goal", [
    ("pass cuda:0", "below the goal of 100 %: raise or pass"),
    ("RuntimeError: other words", "not listed: mv | args[0] | cpu"),
])
def test_one_case_that_ends_otherwise_is_told_and_fails(script, table, tmp_path, outcome, goal):
    path = altered(table, tmp_path, (*MATRIX, "args[0]", "cpu"), outcome)
    done = script("--compare", path, "--against", table)
    assert done.returncode == 1 and goal in done.stdout
    assert f"not listed: mv | args[0] | cpu | {MATRIX[1]} | {outcome} | here: RuntimeError: Expected all" in done.stdout


def test_a_listed_disagreement_passes_and_one_that_is_gone_does_not(script, table, tmp_path):
    path = altered(table, tmp_path, (*MATRIX, "args[0]", "cpu"), "pass cuda:0")
    listed = tmp_path / "exceptions.txt"
    listed.write_text("mv | args[0] | cpu | a reason\n")
    part = "--ops", "mv", "--exceptions", listed
    done = script("--compare", path, "--against", table, *part)
    assert done.returncode == 0 and "\nlisted: mv | args[0] | cpu" in done.stdout
    done = script("--compare", table, "--against", table, *part)
    assert done.returncode == 1 and "listed, but equal now: mv | args[0] | cpu" in done.stdout


def test_a_whole_table_must_meet_the_goals(script, table, tmp_path):
    path = table
    for change in ("cpu", "cpu()", "cpu(1)", "cuda:1", "cuda:1()"):
        path = altered(path, tmp_path, (*MATRIX, "args[0]", change), "RuntimeError: other words")
    listed = tmp_path / "exceptions.txt"
    listed.write_text("mv | args[0] | cpu cpu() cpu(1) cuda:1 cuda:1() | a reason\n")
    done = script("--compare", path, "--against", table, "--exceptions", listed)
    assert done.returncode == 1 and "not listed" not in done.stdout
    assert "below the goal of 99 %: message" in done.stdout and "goal of 100 %" not in done.stdout


def of_release(table, scratch, release, *, without="", more=()):
    """A copy of a table that another release of torch would have written."""
    lines = [line for line in table.read_text().splitlines() if not (without and line.startswith(without + "\t"))]
    told = [f'# torch: "{release}"' if line.startswith("# torch") else line for line in lines]
    path = scratch / f"{release}.tsv.gz"
    path.write_bytes(gzip.compress(("\n".join([*told, *more]) + "\n").encode()))
    return path


def test_a_table_of_another_release_is_compared_over_what_both_have(script, table, tmp_path):
    more = "\t".join(("mv", "input:9 args[0]:9", "all", "cuda:0", "pass cuda:0"))
    older = of_release(table, tmp_path, "2.0.0", without="cat", more=[more])
    done = script("--compare", older, "--against", table)
    assert done.returncode == 0 and "of two releases of torch" in done.stdout and "\n3 operators" in done.stdout
    assert "(0 operators and 1 cases have only one)" in done.stdout
    assert "cases of one alone: mv (the table): 1" in done.stdout


@pytest.mark.parametrize("since, words, good", [
    ("2.5", "RuntimeError: Expected all tensors", True),
    ("2.5", "RuntimeError: other words", False),
    ("2.0", "RuntimeError: Expected all tensors", False),
])
def test_what_a_release_answers_otherwise_is_told_apart_by_the_release(script, table, tmp_path, since, words, good):
    old_words = altered(table, tmp_path, (*MATRIX, "args[0]", "cpu"), "RuntimeError: old words")
    older = of_release(old_words, tmp_path, "2.0.0")
    releases = tmp_path / "releases.txt"
    releases.write_text(f"mv | args[0] | cpu | {since} | {words}\n")
    done = script("--compare", older, "--against", table, "--ops", "mv", "--releases", releases)
    assert done.returncode == int(not good)
    assert f"{int(good)} cases are answered otherwise since a release between them" in done.stdout
    unseen = "a change of release that no case shows: mv | args[0] | cpu" in done.stdout
    assert unseen == words.endswith("other words")


def test_a_call_that_ends_its_process_or_the_device_costs_itself(script, table, tmp_path):
    (tmp_path / "expecttest.py").write_text(SPOILED)
    path = tmp_path / "spoiled.tsv"
    done = script("--ops", "cross|mv", "--samples", 2, "--jobs", 1, "--out", path, sim=2, path=tmp_path)
    assert done.returncode == 0, done.stderr
    whole = {case: outcome for case, outcome in outcomes(table).items() if case[0] in ("cross", "mv")}
    different = {case: outcome for case, outcome in outcomes(path).items() if whole[case] != outcome}
    assert outcomes(path).keys() == whole.keys()
    assert {(case[0], case[2], case[3], outcome) for case, outcome in different.items()} == {
        ("cross", "args[0]", "cpu()", "ended the process: SIGABRT"),
        ("mv", "args[0]", "cpu()", "device assert: CUDA error: device-side assert triggered")}
    assert f"{sum(case[0] == 'cross' for case in different)} end the process" in done.stdout


def test_without_a_device_it_says_so_in_one_line(script, python):
    code = "import torch; print(torch.cuda.is_available())"
    if subprocess.run([python, "-W", "ignore", "-c", code], capture_output=True, text=True).stdout.strip() == "True":
        pytest.skip("there is a device")
    done = script("--out", script.scratch / "none.tsv")
    assert done.returncode == 2 and done.stdout == "" and len(done.stderr.splitlines()) == 1
    assert "has no CUDA device here" in done.stderr and not (script.scratch / "none.tsv").exists()


def operators_of(path):
    """The operators of the part that is compared every time."""
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    names = {line.partition("\t")[0] for line in text.splitlines() if not line.startswith("#")}
    spread = {name for name in names if hashlib.sha256(name.encode()).digest()[0] % SPREAD == 0}
    assert set(MECHANISMS) <= names
    return sorted(spread | set(MECHANISMS))


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.name)
def test_the_simulation_agrees_with_a_gpu_over_a_part_of_its_table(script, path):
    done = script("--compare", path, "--ops", "|".join(map(re.escape, operators_of(path))), "--jobs", 2)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.name)
def test_the_simulation_agrees_with_a_gpu_over_its_whole_table(script, path):
    done = script("--compare", path)
    assert done.returncode == 0, done.stdout + done.stderr
