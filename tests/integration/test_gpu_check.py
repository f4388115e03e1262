"""scripts/gpu_check, which is for machines with a GPU, rehearsed on simulated devices; and what it makes of what it sees."""

import gzip
import json
import os
import pathlib
import subprocess
import sys
import time
import types

import pytest

from harness import LEAKING, ROOT, need_simulated_devices

sys.path.insert(0, str(ROOT / "scripts"))

import corpus_programs  # noqa: E402
import corpus_run  # noqa: E402
import gpu_check_build  # noqa: E402
import gpu_check_device  # noqa: E402
import gpu_check_programs  # noqa: E402
from corpus_programs import Program  # noqa: E402
from gpu_check_run import Check, Step  # noqa: E402


def on_gpus(count):
    return corpus_programs.programs([corpus_programs.CORPUS / side for side in corpus_programs.SIDES], count)


def environment():
    return {key: value for key, value in os.environ.items() if key not in LEAKING}


def gpu_check(*arguments):
    return subprocess.run([sys.executable, ROOT / "scripts/gpu_check", *map(str, arguments)], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, env=environment(), timeout=400)


@pytest.fixture
def check(tmp_path, devsan, python):
    return Check(types.SimpleNamespace(out=tmp_path / "out", work=tmp_path / "work", devsan=devsan, python=python, minutes=5,
                                       sim=0, truth_seconds=10, programs=[], spread=60))


# ---- as a whole

def test_a_pack_serves_a_machine_that_has_nothing_and_the_rehearsal_there_ends_with_a_table(python, tmp_path):
    need_simulated_devices(python)
    if not (ROOT / ".venv/bin/devsan").exists():
        pytest.skip("there is nothing to pack: .venv holds no devsan")
    site = subprocess.run([python, "-c", "import importlib.util as u; print(u.find_spec('torch').origin)"], capture_output=True,
                          text=True, check=True).stdout.strip().removesuffix("/torch/__init__.py")
    pack = tmp_path / "pack.tar.gz"
    done = gpu_check("--pack", "--torch", site, "--pack-file", pack, "--python", python)
    assert done.returncode == 0 and "hooks " in done.stdout, done.stderr
    assert pack.stat().st_size < 40 << 20

    out = tmp_path / "out"
    done = gpu_check(out, "--work", tmp_path / "work", "--pack-file", pack, "--python", python, "--sim", 1,
                     "--spread", 3, "--only", "graphs,spread")
    results = json.loads((out / "results.json").read_text())
    steps = {step["name"]: (step["verdict"], step["result"]) for step in results["steps"]}
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert steps["devsan"][1].endswith("as packed") and steps["hooks"] == ("ok", "taken from the cache")
    assert steps["CUDA graphs"] == ("ok", "5 of 5 ways of capture pass; as without devsan")
    assert {row["expect"] for row in results["programs"]} == {"raises", "silent", "clean"}
    assert {row["verdict"] for row in results["programs"]} == {"right"}
    table = (out / "gpu.md").read_text()
    assert "| CUDA graphs | ok | 5 of 5" in table and "A rehearsal on simulated devices" in table
    assert len(list(out.iterdir())) <= 8 and all(path.is_file() for path in out.iterdir())
    assert "the end; left out: nothing" in done.stdout


def test_a_step_that_does_not_exist_is_refused(tmp_path):
    done = gpu_check(tmp_path, "--only", "graphs,nonsense")
    assert done.returncode == 2 and "there is no step nonsense" in done.stderr


# ---- the time

def test_what_the_time_does_not_suffice_for_is_left_out_and_told(check):
    ran = []
    check.deadline = time.monotonic() + 50
    assert check.step(Step("short", lambda check: (True, ran.append("short")), 20))
    assert check.step(Step("long", lambda check: (True, ran.append("long")), 100))
    assert ran == ["short"]
    assert [(row["name"], row["verdict"]) for row in check.results["steps"]] == [("short", "ok"), ("long", "left out")]
    assert "it needs 100 s" in check.results["steps"][1]["result"]


def test_a_step_that_fails_or_breaks_is_told_and_ends_nothing(check):
    assert not check.step(Step("wrong", lambda check: (False, "words")))
    assert not check.step(Step("broken", lambda check: 1 / 0))
    assert [(row["verdict"], row["result"]) for row in check.results["steps"]] == [
        ("FAIL", "words"), ("FAIL", "ZeroDivisionError: division by zero")]


def test_a_command_ends_with_what_it_started_when_its_time_is_over(check):
    done = check.run(["bash", "-c", "echo said; sleep 300 & wait"], 1)
    assert done.returncode == 124 and done.stdout == "said\n" and "ran out of time" in done.stderr
    assert check.run(["/no/such/program"], 1).returncode == 127


# ---- programs

FORKED = {
    "1_prints.py": "import sys, torch\nprint(__name__, sys.argv, __file__, torch.initial_seed())\n",
    "2_raises.py": "import torch\ntorch.ones(2) + torch.ones(3)\n",
    "3_ends.py": "import sys\nsys.exit(7)\n",
    "4_hangs.py": "import time\nprint('began', flush=True)\ntime.sleep(300)\n",
}


def test_forked_programs_run_as_main_and_one_that_hangs_is_ended(python, tmp_path):
    for name, text in FORKED.items():
        (tmp_path / name).write_text(text)
    out = tmp_path / "out"
    out.mkdir()
    command = [python, corpus_run.FORKS, "4", "20", out, *(tmp_path / name for name in FORKED)]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment(), timeout=200)
    assert done.returncode == 0, done.stderr
    ended = {told["program"]: told["status"] for told in map(json.loads, done.stdout.splitlines())}
    assert ended == {"1_prints.py": 0, "2_raises.py": 1, "3_ends.py": 7, "4_hangs.py": None}
    path = str(tmp_path / "1_prints.py")
    assert (out / "1_prints.py.out").read_text() == f"__main__ {[path]} {path} 0\n"
    assert "The size of tensor a (2) must match" in (out / "2_raises.py.err").read_text().splitlines()[-1]
    assert (out / "4_hangs.py.out").read_text() == "began\n"


def test_the_spread_is_fixed_and_has_every_kind_but_races():
    found = on_gpus(1)
    chosen = gpu_check_programs.spread(found, 60)
    assert chosen == gpu_check_programs.spread(found[::-1], 60) and 50 <= len(chosen) <= 60
    assert {program.expect for program in chosen} == {"raises", "silent", "clean"}
    assert not any(program.is_race() or program.gpus > 1 for program in chosen)
    assert sum(program.is_race() for program in found) >= 5
    assert any(program.gpus == 2 for program in on_gpus(2))


@pytest.mark.parametrize("text, gpus", [
    ("# needs: 2 GPUs\n", 2), ('second = torch.device("cuda", 1)', 2), ("x.to('cuda:1')", 2), ('torch.device("cuda", 0)', 1),
    ("'cuda:10'", 1),
])
def test_a_program_that_names_a_second_gpu_needs_one_whether_it_says_so_or_not(tmp_path, text, gpus):
    path = tmp_path / "1_x.py"
    path.write_text(f"# expect: clean\n{text}\n")
    assert Program.read(path).gpus == gpus


def finding(kind="device-mismatch", line=5, cause=3):
    return {"kind": kind, "severity": "error", "where": {"line": line}, "root_cause": cause and {"line": cause}}


@pytest.mark.parametrize("expect, status, found, judged", [
    ("raises", 1, [finding()], (True, True)),
    ("raises", 1, [finding(cause=4)], (True, False)),
    ("raises", 1, [finding(cause=None)], (True, False)),
    ("raises", 1, [finding(line=6)], (False, None)),
    ("raises", 0, [finding()], (False, None)),
    ("silent", 0, [finding("async-race")], (True, True)),
    ("silent", 0, [finding("implicit-sync")], (False, None)),
    ("silent", 0, [], (False, None)),
    ("clean", 0, [], (True, None)),
    ("clean", 0, [finding()], (False, None)),
    ("clean", 1, [], (False, None)),
])
def test_a_program_is_right_when_its_line_is_told_and_its_cause_when_that_is_the_line_to_change(expect, status, found,
                                                                                               judged):
    program = Program(None, expect, ("async-race",), 1, "a thread", frozenset({5}), frozenset({3}), frozenset({3}))
    assert gpu_check_programs.judge(program, status, found) == judged


class Ended:
    """A side of which one program ended."""

    def __init__(self, status, out):
        self.ended = {"1_x.py": {"pid": 5}}
        self.outcome = lambda program: (status, out, "")


@pytest.mark.parametrize("kinds, told", [(("async-race",), [True, False]), (("",), [False, False])])
def test_output_must_be_the_same_but_for_that_of_a_race_and_the_status_always(kinds, told):
    program = Program(ROOT / "1_x.py", "clean", kinds, 1, "a thread", frozenset(), frozenset(), frozenset())
    rows = [gpu_check_programs.judged(program, Ended(0, "one"), traced, {})
            for traced in (Ended(0, "two"), Ended(1, "one"))]
    assert [row["unchanged"] for row in rows] == told


def test_findings_of_a_programs_workers_are_its_own(check, tmp_path, monkeypatch):
    processes = [{"pid": pid, "parent_pid": parent} for pid, parent in ((1, 0), (5, 1), (9, 5), (6, 1))]
    report = {"run": {"processes": processes}, "findings": [{"pid": 9, "kind": "a"}, {"pid": 6, "kind": "b"}]}
    monkeypatch.setattr(check, "report", lambda *paths: report)
    found = gpu_check_programs.findings_by_process(check, tmp_path)
    assert [one["kind"] for one in found[5]] == ["a"] and [one["kind"] for one in found[6]] == ["b"]


def test_a_summary_names_what_is_wrong_and_what_was_left_out():
    rows = [{"program": "a", "verdict": "right", "root": True, "unchanged": True},
            {"program": "b", "verdict": "wrong", "unchanged": True},
            {"program": "c", "verdict": "right", "root": False, "unchanged": False},
            {"program": "d", "verdict": "no time"}]
    good, words = gpu_check_programs.summary(rows)
    assert not good
    assert words == ("2 of 4 as expected, the line to change in 1 of 2, output changed in 1 (c); not as expected: b; "
                     "left out: 1, the time was over")
    assert gpu_check_programs.summary(rows[:1])[0]
    assert not gpu_check_programs.summary(rows[3:])[0]  # where nothing ran, nothing is well


# ---- what only a GPU can tell

LOG = """\
[18:22:21.099][2564{0}][CUDA][E] Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuStreamGetDevice
[18:22:2{0}.100][2564{0}][CUDA][E] Returning 201 (CUDA_ERROR_INVALID_CONTEXT) from cuCtxGetDevice
"""
REFUSED = "[18:22:21.312][25642][CUDA][E] Returning 900 (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) from cuStreamGetDevice\n"


def test_what_the_driver_says_with_devsan_alone_is_found_whatever_its_time_and_process():
    assert gpu_check_device.added_lines(LOG.format(1), LOG.format(2)) == []
    [line] = gpu_check_device.added_lines(LOG.format(1), LOG.format(2) + REFUSED)
    assert line.endswith("Returning 900 (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) from cuStreamGetDevice")
    assert len(gpu_check_device.added_lines(LOG.format(1), LOG.format(2) * 2)) == 2
    assert gpu_check_device.added_lines(REFUSED, "") == []


QUIET = {"findings": [{"kind": "implicit-sync", "severity": "note"}]}
LOUD = {"findings": [{"kind": "async-race", "severity": "warning"}]}


@pytest.mark.parametrize("output, log, report, good, words", [
    ("same", "", QUIET, True, "as without devsan; same"),
    ("other", "", QUIET, False, "differs from without devsan: output"),
    ("same", "[1][E] Returning 900", QUIET, False, "the driver says more: [E] Returning 900"),
    ("same", "", LOUD, False, "told: async-race"),
    ("same", "", None, False, "no report"),
])
def test_a_correct_program_must_do_the_same_and_be_told_of_by_nobody(check, monkeypatch, output, log, report, good, words):
    def run(command, most, env, **how):
        traced = "--out" in map(str, command)
        if traced and log:
            pathlib.Path(env["CUDA_LOG_FILE"]).write_text(log)
        return subprocess.CompletedProcess(command, 0, (output if traced else "same") + "\n", "")

    monkeypatch.setattr(check, "run", run)
    monkeypatch.setattr(check, "report", lambda out: report)
    told_good, told = gpu_check_device.check_quiet(check, "x", 9, "x.py")
    assert told_good == good and words in told


def test_calls_of_the_driver_are_summed_over_processes_and_device_memory_alone():
    calls = [{"call": "cudaMalloc", "kind": "allocate", "space": "device", "count": 132},
             {"call": "cudaHostAlloc", "kind": "allocate", "space": "pinned", "count": 4},
             {"call": "cudaFree", "kind": "free", "space": "device", "count": 12}]
    memory = [{"space": "device", "peak": 4096}, {"space": "pinned", "peak": 9999}]
    report = {"run": {"processes": [{"device_calls": {"calls": calls, "memory": memory}}, {}]}}
    assert gpu_check_device.driver_figures(report) == {"allocations": 132, "frees": 12, "peak": 4096}


TABLE = """\
# gpu_truth/1
# torch: "2.11.0+cu130"
# devices: ["a card"]
# simulated: false
# date: "2026-11-27"
# missing: ["t", "var"]
add\tinput:1\tall\tcuda:0\tpass cuda:0
"""


def test_of_the_truth_table_only_what_the_committed_one_lacks_is_made(check, tmp_path, monkeypatch):
    tables = tmp_path / "tables"
    tables.mkdir()
    (tables / "one.tsv.gz").write_bytes(gzip.compress(TABLE.encode()))
    (tables / "other.tsv").write_text(TABLE.replace("2.11.0", "2.10.0"))
    monkeypatch.setattr(gpu_check_device, "TABLES", tables)
    check.results["machine"] = {"torch": "2.11.0+cu130"}
    asked = []

    def made(command, most, **how):
        command = list(map(str, command))
        asked.append(command[command.index("--ops") + 1])
        text = TABLE.replace("add\t", "var\t").replace('["t", "var"]', "[]")
        (check.out / "gpu_truth.tsv").write_text(text)
        return subprocess.CompletedProcess(command, 0, "told\n", "")

    monkeypatch.setattr(check, "run", made)
    good, words = gpu_check_device.check_truth(check)
    assert asked == ["t|var"] and not good and words.startswith("1 of 2 operators added")
    table = gpu_check_device.Table.read(check.out / "gpu_truth.tsv")
    assert table.operators() == {"add", "var"} and table.facts["missing"] == ["t"]


# ---- the pack

def test_a_packed_command_compiles_in_any_folder_with_the_compiler_that_is_there():
    command = (f"/opt/wrapped/cxx -I{ROOT}/build/gpu_check/commands/launch/generated -I{ROOT} -DFMT_SHARED -o launch/a.o "
               f"-c {ROOT}/launch/a.cpp")
    assert gpu_check_build.portable(command, "/opt/wrapped/cxx") == (
        "g++ -I@BUILD@/launch/generated -I@ROOT@ -DFMT_HEADER_ONLY -o launch/a.o -isystem @PACK@/include -c @ROOT@/launch/a.cpp")
    assert gpu_check_build.portable("/usr/bin/cmake -E rm -f x.a && /usr/bin/gcc-ar-12 qc x.a a.o && /usr/bin/gcc-ranlib-12 x.a",
                                    "/usr/bin/c++") == "rm -f x.a && ar qc x.a a.o && ranlib x.a"


def test_packed_hooks_become_the_users_own_and_nobody_elses(tmp_path):
    hooks = tmp_path / "pack/cache/devsan/0.1.0-key"
    hooks.mkdir(parents=True, mode=0o777)
    (hooks / "libdevsan_torch.so").write_text("")
    cache = tmp_path / "cache/devsan"
    gpu_check_build.take_cache(tmp_path / "pack", cache)
    assert (cache / "0.1.0-key/libdevsan_torch.so").exists()
    assert [path.stat().st_mode & 0o777 for path in (cache, cache / "0.1.0-key")] == [0o700, 0o700]


def test_a_folder_without_torch_is_refused_as_a_wheels(tmp_path):
    done = gpu_check("--pack", "--torch", tmp_path, "--pack-file", tmp_path / "pack.tar.gz")
    assert done.returncode == 1 and "holds no torch/lib/libtorch_cpu.so" in done.stderr
    assert not (tmp_path / "pack.tar.gz").exists()
