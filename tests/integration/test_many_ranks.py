"""Many ranks as one report: what sets some apart, restarts as attempts, killed ranks, thousands of files."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

from harness import ROOT, Runner, need_simulated_devices, view

sys.path.insert(0, str(ROOT / "scripts"))
from rank_files import make_rank_files  # noqa: E402

# The group of the upper half of the ranks is offloaded.
TRAINING = """
    import os, signal, sys
    import torch

    class Group:
        def __init__(self, offload):
            self.grad = torch.ones(16, device="cpu" if offload else "cuda")

    def step_of(group, norm):
        try:
            group.grad.mul_(1.0 / norm)
        except RuntimeError:
            pass

    rank, ranks, attempt = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT"))
    model = torch.nn.Linear(16, 16).to("cuda")
    group = Group(offload=rank >= ranks // 2)
    for step in range(3):
        model(torch.randn(4, 16, device="cuda")).square().sum().backward()
        step_of(group, torch.ones(1, device="cuda"))
        {fate}
"""
KILLED_ONCE = "rank == 1 and attempt == 0 and step == 1 and os.kill(os.getpid(), signal.SIGKILL)"


class Torchrun:
    """Runs the training on some ranks, and gives the directory of their traces."""

    def __init__(self, devsan, python, scratch):
        self.devsan, self.python, self.scratch = devsan, python, scratch

    def __call__(self, name, ranks, *options, fate="pass"):
        program = self.scratch / f"{name}.py"
        program.write_text(textwrap.dedent(TRAINING.format(fate=fate)))
        out = self.scratch / name
        env = Runner(self.devsan, self.python, self.scratch).environment({"OMP_NUM_THREADS": "1"})
        command = [self.devsan, "run", "--sim", "1", "--quiet", "--out", out, "--", self.python, "-m",
                   "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", *options, program]
        done = subprocess.run(list(map(str, command)), env=env, capture_output=True, text=True, timeout=300)
        return out, done


@pytest.fixture(scope="module")
def torchrun(devsan, python, tmp_path_factory):
    need_simulated_devices(python)
    return Torchrun(devsan, python, tmp_path_factory.mktemp("torchrun"))


@pytest.fixture(scope="module")
def four(torchrun):
    out, done = torchrun("four", 4)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def restarted(torchrun):
    out, done = torchrun("restarted", 2, "--max-restarts=1", fate=KILLED_ONCE)
    assert done.returncode == 0, done.stderr
    return out


def shown(devsan, out, *words):
    return subprocess.run([devsan, "view", out, *words], capture_output=True, text=True, check=True).stdout


def test_a_finding_of_some_ranks_names_the_others_and_what_sets_them_apart(devsan, four):
    [finding] = [one for one in view(devsan, four)["findings"] if one["kind"] == "device-mismatch"]
    assert (finding["ranks"], finding["other_ranks"]) == ([2, 3], [0, 1])
    devices = [one for one in finding["differs"] if one["what"].startswith("device of `group.grad`")]
    assert [(one["here"], one["there"]) for one in devices] == [("cpu", "cuda:0")]
    text = shown(devsan, four)
    assert "Ranks 0, 1 ran as far and had it not:" in text and "cpu here, cuda:0 there" in text
    assert "Ranks 0, 1 ran as far and had it not:" in shown(devsan, four, "--markdown")


def test_a_finding_of_all_ranks_sets_none_apart(devsan, four):
    report = view(devsan, four)
    common = [one for one in report["findings"] if one["ranks"] == [0, 1, 2, 3]]
    assert all(one["other_ranks"] == [] and one["differs"] == [] for one in report["findings"]
               if one["kind"] == "device-mismatch" and one in common)
    ranks = {process["rank"]: process for process in report["run"]["processes"] if process["rank"] is not None}
    assert {rank: (one["local_rank"], one["world_size"], one["node"], one["attempt"])
            for rank, one in ranks.items()} == {rank: (rank, 4, 0, 0) for rank in range(4)}
    assert all(one["ended"] for one in ranks.values())


def test_restarted_workers_are_attempts_of_one_run(devsan, restarted):
    report = view(devsan, restarted)
    workers = [one for one in report["run"]["processes"] if one["rank"] is not None]
    assert sorted((one["rank"], one["attempt"]) for one in workers) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert len({one["run"] for one in workers}) == 1
    [mismatch] = [one for one in report["findings"] if one["kind"] == "device-mismatch"]
    assert mismatch["ranks"] == [1] and mismatch["other_ranks"] == [0]
    assert "ranks 0, 1 were started 2 times; these attempts are shown as one run" in " ".join(
        shown(devsan, restarted).split())


def test_a_killed_attempt_is_told_with_its_rank(devsan, restarted):
    [ended] = [one for one in view(devsan, restarted)["findings"]
               if one["kind"] == "abnormal-exit" and one["ending"]["signal"] == "SIGKILL"]
    assert ended["ranks"] == [1]
    [killed] = [one for one in view(devsan, restarted)["run"]["processes"] if one["pid"] == ended["pid"]]
    assert (killed["rank"], killed["attempt"], killed["close"]) == (1, 0, "open")


def test_nodes_are_told_apart_and_what_one_node_alone_has(devsan, four, tmp_path):
    # Of 12 ranks on three nodes, those of the last node are made of a rank that has the finding.
    templates = {rank: next(four.glob(f"rank{rank}.*.devsan")) for rank in (0, 3)}
    for rank, template in templates.items():
        (tmp_path / f"only{rank}").mkdir()
        (tmp_path / f"only{rank}" / template.name).write_bytes(template.read_bytes())
    out = tmp_path / "nodes"
    make_rank_files(tmp_path / "only0", tmp_path / "sound", 12, per_node=4)
    make_rank_files(tmp_path / "only3", tmp_path / "odd", 12, per_node=4)
    out.mkdir()
    for rank in range(12):
        name = f"rank{rank}.{10_000 + rank}.devsan"
        (tmp_path / ("odd" if rank >= 8 else "sound") / name).rename(out / name)
    [finding] = [one for one in view(devsan, out)["findings"] if one["kind"] == "device-mismatch"]
    assert finding["ranks"] == [8, 9, 10, 11] and finding["other_ranks"] == list(range(8))
    [node] = [one for one in finding["differs"] if one["what"] == "node"]
    assert node["here"] == "2 (node-0002)" and node["there"] == "0 (node-0000), 1 (node-0001)"
    processes = {one["rank"]: one["node"] for one in view(devsan, out)["run"]["processes"]}
    assert processes == {rank: rank // 4 for rank in range(12)}


def test_a_thousand_files_give_the_findings_of_few_and_bounded_memory(devsan, four, tmp_path):
    make_rank_files(four, tmp_path / "many", 1200)
    file = tmp_path / "report.json"
    pid = os.posix_spawn(devsan, [str(devsan), "view", str(tmp_path / "many"), "--json", str(file)], os.environ)
    _, status, usage = os.wait4(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert usage.ru_maxrss < 512 * 1024
    report = json.loads(file.read_text())
    assert len(report["run"]["processes"]) == 1200
    [finding] = [one for one in report["findings"] if one["kind"] == "device-mismatch"]
    assert finding["ranks"] == [rank for rank in range(1200) if rank % 4 >= 2]
    assert finding["other_ranks"] == [rank for rank in range(1200) if rank % 4 < 2]
    few = {one["id"] for one in view(devsan, four)["findings"] if one["kind"] != "abnormal-exit"}
    assert {one["id"] for one in report["findings"]} == few
    assert max(len(thread["last"]) for one in report["run"]["processes"] for thread in one["threads"]) == 4


def test_order_of_files_and_threads_does_not_matter(devsan, four, tmp_path):
    make_rank_files(four, tmp_path / "many", 64)
    reports = []
    for _ in range(3):
        reports.append(shown(devsan, tmp_path / "many", "--json"))
    assert reports[0] == reports[1] == reports[2]


def test_damaged_files_among_many_are_told_and_the_others_are_read(devsan, four, tmp_path):
    out = tmp_path / "many"
    make_rank_files(four, out, 40)
    with open(next(out.glob("rank3.*")), "r+b") as file:
        file.truncate(5000)
    next(out.glob("rank7.*")).write_bytes(b"")
    report = view(devsan, out)
    assert {os.path.basename(one["file"]).split(".")[0] for one in report["damage"]} == {"rank3", "rank7"}
    assert len(report["run"]["processes"]) == 39
