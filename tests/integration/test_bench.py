"""scripts/bench runs and says what it measured. Nothing here depends on how fast that was."""

import collections
import json
import os
import re
import subprocess
import sys

import pytest

from harness import LEAKING, ROOT, need_simulated_devices

sys.path.insert(0, str(ROOT / "scripts"))

import bench_callgrind  # noqa: E402
import bench_table  # noqa: E402

PROFILE = """\
events: Ir
ob=(1) /lib/libdevsan_torch.so
fl=(1) call.h
fn=(1) devsan::hooks::WrapperEntry<&at::_ops::add::call>::entry()
10 5
fi=(2) other.h
+2 3
cob=(2) /lib/libc.so.6
cfi=(3) libc.c
cfn=(2) getpid
calls=4 100
12 4000
fn=(3) devsan::hooks::OutermostCall::OutermostCall()
* 20
cfn=(1)
calls=2 10
* 16
ob=(2)
fl=(3)
fn=(2)
100 1000

totals: 1028
"""


def test_a_callgrind_profile_is_summed_by_function(tmp_path):
    path = tmp_path / "dump.1"
    path.write_text(PROFILE)
    profile = bench_callgrind.read_profile(path)
    wrapper = ("/lib/libdevsan_torch.so", "devsan::hooks::WrapperEntry<&at::_ops::add::call>::entry()")
    outermost = ("/lib/libdevsan_torch.so", "devsan::hooks::OutermostCall::OutermostCall()")
    libc = ("/lib/libc.so.6", "getpid")
    assert profile.own == {wrapper: 8, outermost: 20, libc: 1000}
    assert profile.calls == {wrapper: 2, libc: 4}
    assert profile.total == 1028
    assert bench_callgrind.wrapper_calls(profile) == 2


def profile(own, calls):
    return bench_callgrind.Profile(sum(own.values()), collections.Counter(own), collections.Counter(calls))


def test_the_breakdown_takes_what_ran_without_hooks_from_what_ran_with_them():
    off = profile({("libc.so", "malloc"): 100}, {("libc.so", "malloc"): 2})
    outermost = ("/x/libdevsan_torch.so", "devsan::hooks::OutermostCall::OutermostCall()")
    on = profile({("libc.so", "malloc"): 110, outermost: 80}, {("libc.so", "malloc"): 3, outermost: 10})
    assert bench_callgrind.breakdown(off, on, 10) == [("OutermostCall::OutermostCall", 8.0, 1.0),
                                                      ("malloc [libc]", 1.0, 0.1)]
    assert bench_callgrind.added(off, on) == 90


def test_what_hooks_do_while_they_are_switched_off_counts_as_added():
    release = ("/x/libdevsan_torch.so", "devsan::hooks::delete_storage(void*)")
    off = profile({("libc.so", "free"): 100, release: 60}, {release: 2})
    on = profile({("libc.so", "free"): 100, release: 70}, {release: 2})
    assert bench_callgrind.breakdown(off, on, 10) == [("delete_storage", 7.0, 0.2)]
    assert bench_callgrind.added(off, on) == 70


def test_what_the_allocator_tidies_up_is_not_counted():
    hook = ("/x/libdevsan_torch.so", "devsan::hooks::OutermostCall::OutermostCall()")
    tidies = ("/lib/libc.so.6", "malloc_consolidate")
    off, on = profile({tidies: 5000}, {tidies: 1}), profile({hook: 80, ("libc.so", "_int_malloc'2"): 70}, {hook: 2})
    assert bench_callgrind.added(off, on) == 80
    assert [row[0] for row in bench_callgrind.breakdown(off, on, 10)] == ["OutermostCall::OutermostCall"]


def test_an_operator_counts_once_whether_it_is_wrapped_or_not():
    hooks, torch = "/x/libdevsan_torch.so", "/x/libtorch_cpu.so"
    wrapper = (hooks, "devsan::hooks::WrapperEntry<&at::_ops::add::call>::entry()")
    outermost = (hooks, "devsan::hooks::OutermostCall::OutermostCall(devsan::trace::OperatorId)")
    operators = {(torch, "at::_ops::add_Tensor::call(at::Tensor const&)"): 2, (torch, "at::_ops::view::call()"): 2,
                 (torch, "at::_ops::view::redispatch()"): 2}
    on = profile({outermost: 80}, operators | {wrapper: 2, outermost: 1})
    [row] = bench_callgrind.figures({bench_callgrind.STEP: {"off": profile({}, operators), "on": on, "rounds": 1}}, 320)
    assert (row["operator_calls"], row["wrapper_calls"], row["outermost_calls"]) == (4, 2, 1)
    assert (row["added_per_op"], row["added_per_wrapped_op"]) == (20, 40)


def test_a_round_with_a_census_is_left_out_of_the_sum_with_its_other_half():
    work = ("/x/libdevsan_torch.so", "devsan::hooks::OutermostCall::tag()")
    census = ("/x/libdevsan_torch.so", "devsan::hooks::visit_live_storages(devsan::hooks::LiveStorageVisitor&)")
    step, with_census = profile({work: 10}, {}), profile({work: 10, census: 900}, {})
    summed = bench_callgrind.total([(step, step), (step, with_census), (step, step)])
    assert (summed["off"].total, summed["on"].total, summed["rounds"]) == (20, 20, 2)
    with pytest.raises(RuntimeError, match="census"):
        bench_callgrind.total([(step, with_census)])


def test_the_results_section_of_a_document_is_replaced_and_the_rest_kept(tmp_path):
    document = tmp_path / "benchmarks.md"
    document.write_text("# Title\n")
    bench_table.rewrite(document, "first")
    bench_table.rewrite(document, r"second \1")
    text = document.read_text()
    assert text.startswith("# Title\n") and text.count(bench_table.BEGIN) == 1
    assert r"second \1" in text and "first" not in text


def steps_told(**changed):
    step = {"ms_off": 5.0, "ms_on": 5.0, "ratio": 1.0004, "interval": [0.999, 1.0018], "cpu_ratio": 1.0, "rounds": 40,
            "narrow": True, "verdict": "met", "budget": 1, "width": 0.002}
    return {"steps": {"graph replay": step | changed}, "operators": []}


def test_a_step_whose_interval_is_not_narrow_enough_is_told_so():
    assert len(bench_table.step_lines(steps_told())) == 3
    wide = bench_table.step_lines(steps_told(narrow=False, interval=[0.99, 1.02]))
    assert wide[-1] == "graph replay: the time was over with 1.50 % either way, not 0.20 %"
    none = bench_table.step_lines(steps_told(narrow=False, interval=None))
    assert none[-1] == "graph replay: no interval, the time was over"


def test_a_budget_of_nothing_is_called_so_and_a_rehearsal_meets_none():
    [row] = bench_table.budgets(steps_told())
    assert row["verdict"] == "met"
    assert bench_table.budget_lines({"budgets": [row]})[-1].split()[-3:] == ["1.000x", "nothing", "met"]
    assert bench_table.budgets(steps_told() | {"rehearsal": True})[0]["verdict"] == "NOT TOLD"


@pytest.fixture(scope="module")
def quick_run(devsan, python, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    env = {key: value for key, value in os.environ.items() if key not in LEAKING}
    command = [sys.executable, ROOT / "scripts/bench", "--quick", "--seconds", "4", "--no-callgrind", "--no-others",
               "--devsan", devsan, "--python", python, "--json", folder / "bench.json", "--markdown", folder / "bench.md"]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=folder, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads((folder / "bench.json").read_text()), (folder / "bench.md").read_text()


def test_results_name_what_they_were_measured_on(quick_run):
    _, results, _ = quick_run
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", results["date"])
    assert results["torch"] and results["python"] and results["machine"]["cpu"]
    assert results["device"] == "cpu" and results["quick"] is True


def test_operators_and_steps_were_measured_in_pairs(quick_run):
    _, results, _ = quick_run
    assert {op["operands"] for op in results["operators"]} >= {1, 2, 5}
    for op in results["operators"]:
        assert op["ns_off"] > 0 and op["interval"][0] <= op["ns_added"] <= op["interval"][1]
    assert set(results["steps"]) == {"tiny", "transformer"}
    for step in results["steps"].values():
        assert step["rounds"] >= 1 and step["ms_off"] > 0 and step["ms_on"] > 0
        assert step["interval"] is None or step["interval"][0] <= step["ratio"] <= step["interval"][1]


def test_every_budget_is_told_and_judged_by_its_figure(quick_run):
    table, results, document = quick_run
    steps = {bench_table.STEP_NAMES[name]: step for name, step in results["steps"].items()}
    assert len(results["budgets"]) >= 6 and steps.keys() <= {row["what"] for row in results["budgets"]}
    for row in results["budgets"]:
        if row["what"] in steps:
            assert row["verdict"] == steps[row["what"]]["verdict"]
        else:
            assert row["verdict"] == ("met" if row["measured"] <= row["budget"] else "NOT MET")
        assert re.search(rf"^{re.escape(row['what'])} .* {row['verdict']}$", table, re.M)
    assert max(map(len, table.splitlines())) <= 80
    assert table.strip() in document


def test_the_hooks_were_at_work_in_the_measured_processes(quick_run):
    _, results, _ = quick_run
    assert results["start"]["trace_bytes"] >= 2 << 20
    assert results["start"]["mapped"] > results["start"]["trace_bytes"]


def test_an_allocation_call_is_measured_with_devsan_and_without(quick_run):
    table, results, _ = quick_run
    assert results["skipped"] == []
    assert results["cuda_calls"]["ns_off"] > 0 and results["cuda_calls"]["pairs"] >= 3
    assert "cuMemAlloc" in table


def test_on_a_gpu_steps_of_three_kinds_are_measured_and_graphs_captured(devsan, python, tmp_path):
    """Simulated devices stand for it: what is shown is that every step runs, is switched and told."""
    need_simulated_devices(python)
    env = {key: value for key, value in os.environ.items() if key not in LEAKING} | {"DEVSAN_OPTIONS": "sim=1"}
    command = [sys.executable, ROOT / "scripts/bench", "--device", "cuda", "--quick", "--seconds", "2", "--no-others",
               "--devsan", devsan, "--python", python, "--json", tmp_path / "bench.json"]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "bench.json").read_text())
    assert results["rehearsal"] and results["skipped"] == [] and results["operators"] == []
    assert set(results["steps"]) == {"host-bound", "GPU-bound", "graph replay"}
    assert all(step["rounds"] >= 1 and step["block"] >= 4 for step in results["steps"].values())
    assert {row["what"]: row["budget"] for row in results["budgets"]} == {
        "host-bound step, time": 1.02, "GPU-bound step, time": 1.002, "replay of a CUDA graph, time": 1.0}
    assert {row["verdict"] for row in results["budgets"]} == {"NOT TOLD"} and "a rehearsal" in done.stdout


FAILING_CAPTURE = """
import sys
sys.path.insert(0, {scripts!r})
import torch
import bench_measure

class Refused(torch.cuda.graph):
    def __exit__(self, *exception):
        super().__exit__(*exception)
        raise RuntimeError("CUDA error: operation failed due to a previous error during capture\\nCompile with …")

torch.cuda.graph = Refused
skipped = []
print(sorted(bench_measure.make_steps("cuda:0", skipped)), skipped)
"""


def test_a_capture_that_fails_is_told_and_leaves_the_other_steps(run_python):
    result = run_python(FAILING_CAPTURE.format(scripts=str(ROOT / "scripts")), sim=1)
    assert result.status == 0, result.stderr
    assert result.stdout.strip() == ("['GPU-bound', 'host-bound'] ['graph replay: CUDA error: operation failed due to a "
                                     "previous error during capture']")
