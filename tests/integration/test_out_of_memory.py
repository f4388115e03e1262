"""A simulated device that has no memory left: what was live on it, where, and to whom it belonged."""

import subprocess

import pytest

from harness import ROOT

# A model with an optimizer that makes a few steps; then a batch that the device cannot hold.
TRAINING = """
    import os, signal, sys, torch
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.wide = torch.nn.Linear(512, 2048)
            self.narrow = torch.nn.Linear(2048, 512)
            self.register_buffer("scale", torch.ones(1024, 512))
        def forward(self, x):
            return x + self.narrow(torch.relu(self.wide(x)))
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = torch.nn.ModuleList([Block() for _ in range(3)])
            self.head = torch.nn.Linear(512, 8)
        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return self.head(x)
    model = Net().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    def train(batch):
        x = torch.randn(batch, 512, device="cuda")
        loss = model(x).square().mean()
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
        return loss.item()
    for _ in range(3):
        train(16)
    {then}
"""

MIB = 1 << 20
PARAMETERS = 4 * (3 * (2 * 512 * 2048 + 2048 + 512) + 512 * 8 + 8)
BUFFERS = 4 * 3 * 1024 * 512


def run_training(run_python, then, memory="512M", **others):
    return run_python(TRAINING.format(then=then), sim=1, options=["--sim-memory", memory], **others)


def the_finding(report):
    [finding] = [f for f in report["findings"] if f["kind"] == "out-of-memory"]
    return finding


def by_kind(finding):
    return {row["kind"]: row["bytes"] for row in finding["live_memory"]["by_kind"]}


def test_a_batch_that_is_too_large(run_python):
    run = run_training(run_python, "train(16 << 10)")
    assert run.status == 1 and "OutOfMemoryError" in run.stderr
    finding = the_finding(run.report)
    assert finding["severity"] == "error" and finding["raised"] and not finding["handled"]
    assert "torch.relu(self.wide(x))" in finding["where"]["source"]
    assert "out of memory" in finding["message"]
    live = finding["live_memory"]
    assert live["device"] == "cuda:0" and live["capacity"] == 512 * MIB
    assert live["asked"] == 16 * 1024 * 2048 * 4
    assert live["allocated"] <= live["reserved"] <= live["capacity"]
    kinds = by_kind(finding)
    assert kinds["parameters"] == PARAMETERS
    assert kinds["gradients"] == PARAMETERS
    assert kinds["optimizer state"] == pytest.approx(2 * PARAMETERS, rel=0.01)
    assert kinds["buffers"] == BUFFERS
    assert kinds["activations"] >= 16 * 1024 * 2048 * 4
    assert live["listed"] == pytest.approx(live["allocated"], rel=0.02)


def test_modules_and_lines_are_told_of_what_was_live(run_python):
    live = the_finding(run_training(run_python, "train(16 << 10)").report)["live_memory"]
    modules = {row["module"]: row["bytes"] for row in live["by_module"]}
    assert set(modules) == {"blocks.0", "blocks.1", "blocks.2", "head"}
    assert modules["blocks.1"] == pytest.approx((4 * PARAMETERS + BUFFERS) / 3, rel=0.01)
    largest = live["by_place"][0]
    assert largest["kind"] == "activations" and largest["file"].endswith(".py") and largest["line"] > 0


def test_a_program_that_goes_on_with_a_smaller_batch(run_python):
    then = """
    batch = 16 << 10
    while batch:
        try:
            train(batch)
            break
        except torch.OutOfMemoryError:
            batch //= 2
    print(batch)
    """
    run = run_training(run_python, then.strip())
    assert run.status == 0 and int(run.stdout) > 0
    findings = [f for f in run.report["findings"] if f["kind"] == "out-of-memory"]
    assert findings and all(f["handled"] and f["severity"] == "warning" for f in findings)


def test_a_request_larger_than_the_device(run_python):
    run = run_python("import torch\ntorch.empty(9 << 30, dtype=torch.uint8, device='cuda')", sim=1,
                     options=["--sim-memory", "8G"])
    finding = the_finding(run.report)
    assert finding["where"]["line"] == 2
    assert finding["live_memory"]["asked"] == 9 << 30
    assert finding["live_memory"]["free"] == finding["live_memory"]["capacity"] == 8 << 30
    assert finding["live_memory"]["by_kind"] == []


def test_a_host_without_memory(run_python):
    run = run_python("import torch\nkept = torch.ones(1 << 20)\ntorch.empty(1 << 60, dtype=torch.uint8)")
    finding = the_finding(run.report)
    assert finding["where"]["line"] == 3
    assert finding["live_memory"]["device"] == "cpu" and finding["live_memory"]["asked"] == 1 << 60
    assert by_kind(finding)["inputs and data"] >= 4 * MIB


BACKWARD = """
    x = torch.ones(64 << 20, device="cuda", requires_grad=True)
    y = x * 1.5
    """


def test_out_of_memory_in_a_backward_is_told_by_kind_once_its_caller_has_the_exception(run_python):
    run = run_training(run_python, (BACKWARD + "y.sum().backward()").strip(), "768M")
    finding = the_finding(run.report)
    assert finding["phase"] == "backward"
    kinds = by_kind(finding)
    assert kinds["parameters"] == PARAMETERS and kinds["gradients"] >= PARAMETERS and kinds["buffers"] == BUFFERS
    assert kinds["optimizer state"] == pytest.approx(2 * PARAMETERS, rel=0.01)
    assert kinds["activations"] >= 256 * MIB
    modules = {row["module"] for row in finding["live_memory"]["by_module"]}
    assert modules == {"blocks.0", "blocks.1", "blocks.2", "head"}
    assert finding["live_memory"]["listed"] == pytest.approx(finding["live_memory"]["allocated"], rel=0.02)


def test_what_a_backward_had_made_when_it_failed_counts_as_gradients(run_python):
    then = """
    x = torch.ones(32 << 20, device="cuda", requires_grad=True)
    (x.exp() * x.sin()).sum().backward()
    """
    run = run_training(run_python, then.strip(), "720M")
    kinds = by_kind(the_finding(run.report))
    assert kinds["gradients"] >= PARAMETERS + 128 * MIB
    assert kinds["activations"] >= 128 * MIB


@pytest.mark.parametrize("call", ["torch.autograd.backward(y.sum())", "torch.autograd.grad(y.sum(), x)"])
def test_a_backward_that_fails_twice_is_told_each_time(run_python, call):
    then = BACKWARD + f"""
    kept = []
    for _ in range(2):
        try:
            {call}
        except torch.OutOfMemoryError as error:
            kept.append(str(error))
    print(len(kept))
    """
    run = run_training(run_python, then.strip(), "768M")
    assert run.status == 0 and run.stdout.split() == ["2"], run.stderr
    for finding in run.report["findings"]:
        if finding["kind"] == "out-of-memory":
            assert by_kind(finding)["parameters"] == PARAMETERS


def test_out_of_memory_in_a_backward_that_another_thread_called(run_python):
    """Its own frames lead to no module, those of the main thread do."""
    then = BACKWARD + """
    import threading
    seen = []
    def work(y):
        try:
            y.sum().backward()
        except torch.OutOfMemoryError as error:
            seen.append("out of memory")
    thread = threading.Thread(target=work, args=(y,))
    thread.start()
    thread.join()
    print(seen)
    """
    run = run_training(run_python, then.strip(), "768M")
    assert run.status == 0 and "out of memory" in run.stdout, run.stderr
    kinds = by_kind(the_finding(run.report))
    assert kinds["parameters"] == PARAMETERS and kinds["activations"] >= 256 * MIB


def test_a_kill_right_after_leaves_all_of_it_in_the_file(run_python, devsan):
    then = """
    try:
        train(16 << 10)
    except torch.OutOfMemoryError:
        os.kill(os.getpid(), signal.SIGKILL)
    """
    run = run_training(run_python, then.strip(), start=True)
    kinds = {f["kind"]: f for f in run.report["findings"]}
    assert kinds["abnormal-exit"]["ending"]["signal"] == "SIGKILL"
    assert by_kind(kinds["out-of-memory"])["parameters"] == PARAMETERS


def test_a_scope_may_expect_it(run_python):
    then = """
    import devsan
    with devsan.expect("out-of-memory"):
        try:
            train(16 << 10)
        except torch.OutOfMemoryError:
            pass
    """
    package = {"PYTHONPATH": str(ROOT / "launch")}
    run = run_python(TRAINING.format(then=then.strip()), sim=1, options=["--sim-memory", "512M"], env=package)
    assert run.status == 0, run.stderr
    assert [f["kind"] for f in run.report["suppressed"]] == ["out-of-memory"]


def test_view_shows_it_in_80_columns(run_python, devsan):
    run = run_training(run_python, "train(16 << 10)")
    shown = subprocess.run([devsan, "view", run.out], capture_output=True, text=True).stdout
    assert "error[out-of-memory] cuda:0 has no memory for another" in shown
    assert "optimizer state" in shown and "blocks.1" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())
