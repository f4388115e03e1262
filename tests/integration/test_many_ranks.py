"""Many ranks as one report: what sets some apart, restarts as attempts, killed ranks, thousands of files."""

import json
import os
import subprocess
import sys
import textwrap

import jsonschema
import pytest

from browser import chromium, visit  # noqa: F401 (fixture)
from harness import ROOT, Runner, need_simulated_devices, view

sys.path.insert(0, str(ROOT / "scripts"))
from rank_files import Template, make_rank_files  # noqa: E402

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
    """Runs a program on some ranks, and gives the directory of their traces."""

    def __init__(self, devsan, python, scratch):
        self.devsan, self.python, self.scratch = devsan, python, scratch

    def __call__(self, name, text, ranks, *options, sim=1):
        program = self.scratch / f"{name}.py"
        program.write_text(textwrap.dedent(text))
        out = self.scratch / name
        env = Runner(self.devsan, self.python, self.scratch).environment({"OMP_NUM_THREADS": "1"})
        command = [self.devsan, "run", "--sim", sim, "--quiet", "--out", out, "--", self.python, "-m",
                   "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", *options, program]
        done = subprocess.run(list(map(str, command)), env=env, capture_output=True, text=True, timeout=300)
        return out, done


@pytest.fixture(scope="module")
def torchrun(devsan, python, tmp_path_factory):
    need_simulated_devices(python)
    return Torchrun(devsan, python, tmp_path_factory.mktemp("torchrun"))


@pytest.fixture(scope="module")
def four(torchrun):
    out, done = torchrun("four", TRAINING.format(fate="pass"), 4)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def restarted(torchrun):
    out, done = torchrun("restarted", TRAINING.format(fate=KILLED_ONCE), 2, "--max-restarts=1")
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


def test_the_report_says_why_the_ranks_were_started_again(devsan, restarted, chromium):
    [earlier] = view(devsan, restarted)["run"]["earlier_failures"]
    assert (earlier["attempt"], earlier["rank"], earlier["what"]) == (0, 1, "was ended by SIGKILL")
    assert earlier["where"]["file"] == str(restarted.parent / "restarted.py")
    told = "in attempt 0 rank 1 failed first, in step "
    assert told in " ".join(shown(devsan, restarted).split()) and told in shown(devsan, restarted, "--markdown")
    # Nobody knows in which line a process was killed.
    assert "it was ended by SIGKILL; its last operator was at restarted.py:" in " ".join(shown(devsan, restarted).split())
    page = restarted.parent / "restarted.html"
    shown(devsan, restarted, "--html", page)
    with visit(chromium, page, "#view=run") as visited:
        table = visited.page.get_by_role("table", name="Attempts before the last one")
        assert "It was ended by SIGKILL" in table.inner_text()
        assert f"restarted.py:{earlier['where']['line']}" in table.inner_text()
        assert "Attempt" in visited.page.get_by_role("table", name="Processes").inner_text()


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


def bytes_read_by(command):
    """What a process reads from files, by the kernel's count for this one and the children that it has waited for."""
    def count():
        [line] = [one for one in open("/proc/self/io").read().splitlines() if one.startswith("rchar:")]
        return int(line.split()[1])

    before = count()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return count() - before


def test_of_a_trace_only_what_it_holds_is_read(devsan, four, tmp_path):
    few, many = tmp_path / "few", tmp_path / "many"
    make_rank_files(four, few, 24)
    make_rank_files(four, many, 184)
    read = (bytes_read_by([devsan, "view", many]) - bytes_read_by([devsan, "view", few])) / 160
    held = sum(len(part) for file in few.iterdir() for _, part, _ in Template(file).parts) / 24
    # Beside it the header, for the run and then for the rest, and of each of six sections a page that must be empty.
    assert held < read < held + (2 + 6) * 4096 + 1024
    assert read < next(few.iterdir()).stat().st_size / 20


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


# Some ranks keep a table, and what an optimizer with DeepSpeed's settings keeps, on the CPU. The history of what fails
# has the same lines on all ranks.
OFFLOADED = """
    import atexit, os, pathlib, time
    out = pathlib.Path(__file__).with_suffix("")
    def wait_for(name):
        while not list(out.glob(name)):
            time.sleep(0.01)
    # What is registered before torch is imported runs after devsan has left word of a failure.
    if os.environ["RANK"] == "0" and {waits}:
        atexit.register(wait_for, "second")
    import torch
    import torch.distributed as dist

    class Table(torch.nn.Module):
        def __init__(self, device):
            super().__init__()
            self.register_buffer("scale", torch.ones(16, device=device))

        def forward(self, x):
            return self.scale * x

    class DeepSpeedZeroOptimizer_Stage3:
        def __init__(self, offload):
            self.offload_optimizer = offload
            self.device = "cpu" if offload else "cuda"
            self.fp32_partitioned_groups_flat = [torch.ones(4, device=self.device) for _ in range(2)]

    dist.init_process_group("nccl")
    rank = dist.get_rank()
    odd = rank in {odd}
    theirs = dist.new_group({odd})
    if odd:
        dist.all_reduce(torch.ones(2, device="cuda"), group=theirs)
    model = torch.nn.Linear(16, 16, device="cuda")
    model.table = Table(["cuda", "cpu"][odd])
    model.optimizer = DeepSpeedZeroOptimizer_Stage3(offload=odd)

    def fail_second(y):
        wait_for("failed.rank0.*")
        try:
            model.table(y.detach())
        finally:
            (out / "second").touch()

    for step in range(3):
        y = model(torch.randn(4, 16, device="cuda"))
        y.square().sum().backward()
        {meeting}
    dist.destroy_process_group()
"""
CAUGHT = """try:
            model.table(y.detach())
        except RuntimeError:
            pass"""
# The others have come to the same step, and wait there until torchrun ends them.
UNCAUGHT = """if step == 1:
            dist.barrier()
            model.table(y.detach()) if odd else time.sleep(1000)"""
# Rank 0 fails before that, and ends after it.
FAILS_TOO = UNCAUGHT.replace("model.table(y.detach())", "fail_second(y)").replace("dist.barrier()", """dist.barrier()
            if rank == 0:
                raise ValueError("no more data")""")


class Offloaded:
    def __init__(self, torchrun, name, meeting, odd):
        text = OFFLOADED.format(meeting=meeting, odd=odd, waits=meeting == FAILS_TOO)
        self.devsan = torchrun.devsan
        self.out, self.done = torchrun(name, text, 4, sim=4)
        report = view(self.devsan, self.out)
        [self.finding] = [one for one in report["findings"] if one["kind"] == "device-mismatch"]

    def shown(self, *words):
        return " ".join(shown(self.devsan, self.out, *words).split())

    def written(self, option, name):
        shown(self.devsan, self.out, option, self.out / name)
        return (self.out / name).read_text()


@pytest.fixture(scope="module")
def offloaded(torchrun):
    run = Offloaded(torchrun, "offloaded", CAUGHT, [2, 3])
    assert run.done.returncode == 0, run.done.stderr
    return run


def differences(finding):
    return {one["what"]: (one["here"], one["there"]) for one in finding["differs"]}


def test_what_is_recorded_under_one_name_is_compared_between_ranks(offloaded):
    finding = offloaded.finding
    assert (finding["ranks"], finding["other_ranks"], finding["ended_ranks"]) == ([2, 3], [0, 1], [])
    told = differences(finding)
    assert told["device of `model.optimizer.fp32_partitioned_groups_flat[0]` and 1 more"] == ("cpu", "cuda:0")
    assert told["setting `model.optimizer.device`"] == ("cpu", "cuda")
    assert told["setting `model.optimizer.offload_optimizer`"] == ("1", "0")
    # Its history says the same of the operand itself.
    assert not any("model.table.scale" in what for what in told)


def test_a_group_that_these_ranks_alone_are_in_is_told(offloaded):
    told = differences(offloaded.finding)
    [group] = [what for what in told if what.startswith("process group")]
    assert told[group] == ("a member", "no member")


def test_every_format_tells_what_differs(offloaded):
    line = "device of `model.optimizer.fp32_partitioned_groups_flat[0]` and 1 more: cpu here, cuda:0 there"
    assert line in offloaded.shown()
    assert "setting `model.optimizer.offload_optimizer`: 1 here, 0 there" in offloaded.shown()
    assert "fp32_partitioned_groups_flat" in offloaded.written("--markdown", "report.md")
    [run] = json.loads(offloaded.written("--sarif", "report.sarif"))["runs"]
    [result] = [one for one in run["results"] if one["ruleId"] == "device-mismatch"]
    assert line in result["message"]["text"] and line in result["properties"]["differs"]
    jsonschema.validate(view(offloaded.devsan, offloaded.out),
                        json.loads((ROOT / "report/render/report.schema.json").read_text()))


@pytest.mark.parametrize("meeting, ended", [
    (UNCAUGHT, {"was ended by SIGTERM after rank 3 had failed": [0, 1, 2]}),
    (FAILS_TOO, {"raised ValueError: no more data": [0], "was ended by SIGTERM after rank 0 had failed": [1, 2]}),
], ids=["ended", "failed"])
def test_ranks_that_ended_in_the_step_of_a_finding_are_not_told_as_sound(torchrun, meeting, ended):
    run = Offloaded(torchrun, f"ended{len(ended)}", meeting, [3])
    assert run.done.returncode != 0
    finding = run.finding
    assert (finding["ranks"], finding["other_ranks"]) == ([3], [])
    assert {one["what"]: one["ranks"] for one in finding["ended_ranks"]} == ended
    assert "came to the same step and" in run.shown() and "ran as far" not in run.shown()
    # What they had recorded until then is compared all the same.
    assert differences(finding)["setting `model.optimizer.offload_optimizer`"] == ("1", "0")


# One refusal on all ranks, so that all record what the functions around it know, and one more on the last of four.
CONFIGURED = """
    import os, torch
    rank = int(os.environ["RANK"])
    config = {"offload": rank == 3, "layers": 2, "home": "cpu" if rank == 3 else "cuda"}
    x = torch.ones(2, device="cuda")
    for turn in range(2 if config["offload"] else 1):
        try:
            x + torch.ones(2) if turn == 0 else x * torch.ones(2)
        except RuntimeError:
            pass
    x * 2
"""


def test_variables_of_ranks_that_were_refused_something_else_are_compared(torchrun):
    out, done = torchrun("configured", CONFIGURED, 4)
    assert done.returncode == 0, done.stderr
    [finding] = [one for one in view(torchrun.devsan, out)["findings"] if one["ranks"] == [3]]
    told = differences(finding)
    assert told["`config[offload]` in configured.py"] == ("True", "False")
    assert told["`config[home]` in configured.py"] == ("'cpu'", "'cuda'")
    # Its number is each rank's own; the number of layers is that of all.
    assert not any("layers" in what or "`rank`" in what for what in told)
