"""Memory of the host and of each device over the iterations of a run, on simulated devices."""

import subprocess

import pytest

# Iterations of a tiny model, and what a program does with memory beside.
LOOP = """
    import sys, time, torch
    model = torch.nn.Linear(4, 4, device="cuda")
    steps = int(sys.argv[1])
    def iterate():
        model(torch.ones(2, 4, device="cuda")).sum().backward()
    {before}
    for step in range(steps):
        iterate()
        {each}
    iterate()
"""

MIB = 1 << 20


def loop(before="pass", each="pass"):
    return LOOP.format(before=before, each=each)


def curves(run):
    assert run.status == 0, run.stderr
    [process] = [p for p in run.report["run"]["processes"] if "memory" in p]
    return {curve["device"]: curve for curve in process["memory"]}


def used(curve):
    return [point["used"] for point in curve["points"]]


def test_a_device_curve_follows_what_the_program_keeps(run_python):
    run = run_python(loop("kept = []", "kept.append(torch.ones(1 << 18, device='cuda')); time.sleep(0.021)"), 60, sim=2)
    curve = curves(run)["cuda:0"]
    grown = used(curve)
    assert grown == sorted(grown)
    assert grown[-1] - grown[0] == pytest.approx(59 * MIB, rel=0.05)
    assert curve["peak"]["used"] == grown[-1]
    assert all(point["held"] >= point["used"] for point in curve["points"])
    assert [point["step"] for point in curve["points"]] == list(range(1, 61))
    assert set(curves(run)) == {None, "cuda:0"}, "cuda:1 was never used"


def test_the_peak_of_a_curve_has_its_step(run_python):
    spike = "if step in (20, 21): spike = torch.ones(8 << 20, device='cuda')\n        else: spike = None"
    run = run_python(loop("spike = None", spike + "\n        time.sleep(0.021)"), 40, sim=1)
    curve = curves(run)["cuda:0"]
    assert curve["peak"]["step"] in (21, 22)
    assert curve["peak"]["used"] - curve["points"][-1]["used"] == 32 * MIB


def test_the_hosts_curve_follows_its_own_memory_and_what_is_pinned_of_it(run_python):
    run = run_python(loop("kept = []", "kept.append(torch.ones(1 << 18).pin_memory()); time.sleep(0.021)"), 60, sim=1)
    curve = curves(run)[None]
    first, last = curve["points"][0], curve["points"][-1]
    assert last["held"] - first["held"] == 59 * MIB
    assert last["used"] - first["used"] > 50 * MIB


def test_files_that_are_mapped_are_not_the_hosts_own_memory(run_python, tmp_path):
    (tmp_path / "data").write_bytes(bytes(64 * MIB))
    before = f"import mmap\n    file = open({str(tmp_path / 'data')!r}, 'rb')\n    mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)"
    run = run_python(loop(before, "mapped[step << 20 : step + 1 << 20].count(1); time.sleep(0.021)"), 60, sim=1)
    grown = used(curves(run)[None])
    assert max(grown) - grown[0] < 16 * MIB


def test_a_long_run_keeps_its_whole_curve_in_little_room(run_python):
    # No more than a hundred iterations fit between two looks, however fast the machine is.
    run = run_python(loop(each="time.sleep(0.0002)"), 2000, sim=1)
    curve = curves(run)["cuda:0"]
    assert 1 <= len(curve["points"]) <= 257
    steps = [point["step"] for point in curve["points"]]
    assert steps == sorted(set(steps))
    assert steps[0] <= 2 and steps[-1] > 1800


def test_a_program_without_iterations_has_no_curve(run_python):
    run = run_python("import torch; torch.ones(4, device='cuda') + 1", sim=1)
    assert all("memory" not in process for process in run.report["run"]["processes"])


def test_view_draws_the_curves(run_python, devsan):
    run = run_python(loop("kept = []", "kept.append(torch.ones(1 << 18, device='cuda')); time.sleep(0.021)"), 40, sim=1)
    shown = subprocess.run([devsan, "view", run.out], capture_output=True, text=True, check=True).stdout
    [line] = [line for line in shown.splitlines() if line.strip().startswith("cuda:0") and "▁" in line]
    assert line.rstrip().endswith("█")
    assert any(line.strip().startswith("host") for line in shown.splitlines())
    assert "MiB" in line


def test_a_run_without_a_finding_of_memory_shows_no_table(run_python, devsan):
    run = run_python(loop(each="time.sleep(0.021)"), 10, sim=1)
    shown = subprocess.run([devsan, "view", run.out], capture_output=True, text=True, check=True).stdout
    assert "no finding" in shown and "cuda:0" not in shown
    asked = subprocess.run([devsan, "view", "--memory", run.out], capture_output=True, text=True, check=True).stdout
    assert "memory of pid" in asked and "cuda:0" in asked and "host" in asked


def test_workers_of_a_loader_do_not_show_the_memory_of_their_parent(run_python):
    run = run_python("""
        import time, torch
        class Data(torch.utils.data.Dataset):
            def __len__(self):
                return 40
            def __getitem__(self, index):
                time.sleep(0.01)
                return torch.ones(8)
        model = torch.nn.Linear(8, 8).cuda()
        for batch in torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=1):
            model(batch.cuda()).sum().backward()
        """, sim=1)
    assert run.status == 0, run.stderr
    main, worker = sorted(run.report["run"]["processes"], key=lambda process: process["start"])
    assert worker["parent_pid"] == main["pid"]
    assert [curve["device"] for curve in main["memory"]] == [None, "cuda:0"]
    assert [curve["device"] for curve in worker["memory"]] == [None]


def test_a_forked_child_has_a_curve_of_its_own(run_python):
    program = """
        import os, time, torch
        model = torch.nn.Linear(4, 4)
        def iterate(count):
            for _ in range(count):
                model(torch.ones(2, 4)).sum().backward()
                time.sleep(0.021)
        iterate(3)
        pid = os.fork()
        iterate(3)
        if pid:
            os.waitpid(pid, 0)
    """
    run = run_python(program)
    assert run.status == 0
    processes = run.report["run"]["processes"]
    assert len(processes) == 2 and run.report["damage"] == []
    assert all([curve["device"] for curve in process["memory"]] == [None] for process in processes)
