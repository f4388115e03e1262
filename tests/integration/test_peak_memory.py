"""What was live when most memory was in use, by line and by kind, in runs that end well, on simulated devices."""

import signal
import subprocess

import pytest

from harness import Runner

# The program prints what PyTorch's allocator has in tensors when the last backward begins, and the most that it ever had.
TRAINING = """
    import sys, torch
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.wide = torch.nn.Linear(512, 2048)
            self.narrow = torch.nn.Linear(2048, 512)
            self.register_buffer("scale", torch.ones(1024, 512))
        def forward(self, x):
            return x + self.narrow(torch.relu(self.wide(x)))
    model = Net().to({device!r})
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(4):
        x = torch.randn({batch}, 512).to({device!r})
        loss = model(x).square().mean()
        optimizer.zero_grad(set_to_none={to_none})
        allocated = torch.cuda.memory_allocated()
        loss.backward()
        ended = torch.cuda.memory_allocated()
        {each}
        optimizer.step()
    print(allocated, ended, torch.cuda.max_memory_allocated())
"""

PARAMETERS = 4 * (2 * 512 * 2048 + 2048 + 512)
BUFFERS = 4 * 1024 * 512
LARGE, SMALL = 4096, 8


def training(device="cuda", batch=LARGE, to_none=False, each="pass"):
    return TRAINING.format(device=device, batch=batch, to_none=to_none, each=each)


@pytest.fixture(scope="module")
def trained(devsan, python, tmp_path_factory):
    """The run in which activations are most."""
    return Runner(devsan, python, tmp_path_factory.mktemp("trained"), start=True)(training(), sim=1)


def peaks(run, status=0):
    assert run.status == status, run.stderr
    [process] = [process for process in run.report["run"]["processes"] if "peak_memory" in process]
    return {peak["device"]: peak for peak in process["peak_memory"]}


def by_kind(peak):
    return {row["kind"]: row["bytes"] for row in peak["by_kind"]}


def check_sums(peak):
    """Kinds and lines tell of the same bytes: those that are listed."""
    assert sum(row["bytes"] for row in peak["by_kind"]) == peak["listed"]
    assert sum(row["bytes"] for row in peak["by_place"]) == peak["listed"]
    for kind, size in by_kind(peak).items():
        assert sum(row["bytes"] for row in peak["by_place"] if row["kind"] == kind) == size


def check_training(peak, moment, batch, allocated):
    """What the training has in any case, and what PyTorch's allocator said of it; gives the kinds."""
    check_sums(peak)
    assert peak["moment"] == moment
    kinds = by_kind(peak)
    assert kinds["parameters"] == kinds["gradients"] == PARAMETERS and kinds["buffers"] == BUFFERS
    assert kinds["optimizer state"] == 2 * PARAMETERS and kinds["inputs and data"] == batch * 512 * 4
    # The allocator rounds each tensor up.
    assert peak["allocated"] == pytest.approx(allocated, rel=0.02)
    assert peak["listed"] == pytest.approx(peak["allocated"], rel=0.01)
    return kinds


def test_when_activations_are_most_the_begin_of_a_backward_is_told_by_kind(trained):
    begun, _, most = map(int, trained.stdout.split())
    peak = peaks(trained)["cuda:0"]
    kinds = check_training(peak, "backward-begins", LARGE, begun)
    # What the graph keeps: the result of relu, and of the sum; the loss.
    assert kinds["activations"] == pytest.approx(LARGE * (2048 + 512) * 4, rel=0.01)
    assert "not known" not in kinds
    assert peak["peak"]["bytes"] == most and peak["peak"]["in_backward"]


def test_when_gradients_are_most_the_end_of_a_backward_is_told_by_kind(run_python):
    run = run_python(training(batch=SMALL, to_none=True), sim=1)
    _, ended, most = map(int, run.stdout.split())
    peak = peaks(run)["cuda:0"]
    check_training(peak, "backward-ended", SMALL, ended)
    # The optimizer takes more for a moment; it comes before the next backward, where that is seen.
    assert peak["peak"]["bytes"] == most > peak["allocated"] and not peak["peak"]["in_backward"]


def test_the_host_is_told_of_in_a_training_without_devices(run_python):
    peak = peaks(run_python(training(device="cpu")))[None]
    check_sums(peak)
    kinds = by_kind(peak)
    assert kinds["parameters"] == kinds["gradients"] == PARAMETERS and kinds["buffers"] == BUFFERS
    assert kinds["optimizer state"] == pytest.approx(2 * PARAMETERS, rel=0.001)
    assert kinds["activations"] == pytest.approx(LARGE * (2048 + 512) * 4, rel=0.01)
    assert peak["peak"] is None and peak["allocated"] == 0


def test_lines_have_their_source_and_their_kind(trained):
    peak = peaks(trained)["cuda:0"]
    lines = {(row["kind"], row["op"]): row for row in peak["by_place"]}
    assert lines["activations", "aten::relu"]["line"] == 10
    assert lines["activations", "aten::relu"]["bytes"] == LARGE * 2048 * 4
    assert lines["activations", "aten::relu"]["file"].endswith(".py")


def test_a_run_of_one_step_has_a_peak(run_python):
    run = run_python("""
        import torch
        w = torch.ones(1 << 18, device="cuda", requires_grad=True)
        (w * 2).sum().backward()
        """, sim=1)
    peak = peaks(run)["cuda:0"]
    check_sums(peak)
    assert peak["step"] == 0 and peak["peak"]["bytes"] >= peak["allocated"] >= 2 << 20


def test_what_a_graph_keeps_for_another_backward_is_an_activation(run_python):
    run = run_python("""
        import torch
        w = torch.ones(1 << 18, device="cuda", requires_grad=True)
        for _ in range(3):
            loss = (w * 2).exp().sum()
            loss.backward(retain_graph=True)
            w.grad = None
        """, sim=1)
    kinds = by_kind(peaks(run)["cuda:0"])
    assert kinds["activations"] >= 1 << 20 and "not known" not in kinds


def test_what_no_object_of_the_program_keeps_is_not_guessed(run_python):
    """A reference of C++ alone: a tensor that a capsule keeps for another library."""
    run = run_python("""
        import torch
        w = torch.ones(1 << 10, device="cuda", requires_grad=True)
        kept = torch.ones(1 << 20).to_dense().__dlpack__()
        w = torch.ones(1 << 10, requires_grad=True)
        for _ in range(3):
            (w * 2).sum().backward()
        """, sim=1)
    assert by_kind(peaks(run)[None])["not known"] == 4 << 20


def test_a_larger_step_takes_the_place_of_a_smaller_one(run_python):
    run = run_python("""
        import torch
        w = torch.ones(1 << 10, device="cuda", requires_grad=True)
        for step in range(10):
            rows = 64 if step == 7 else 1
            torch.ones(rows, 1, device="cuda").mul(w).exp().sum().backward()
            w.grad = None
            import time; time.sleep(0.03)
        """, sim=1)
    peak = peaks(run)["cuda:0"]
    assert peak["step"] == 7
    assert by_kind(peak)["activations"] >= 64 << 12


def test_a_kill_in_a_backward_leaves_the_lines_without_kinds(run_python):
    run = run_python("""
        import os, signal, torch
        w = torch.ones(1 << 18, device="cuda", requires_grad=True)
        w.register_hook(lambda grad: os.kill(os.getpid(), signal.SIGKILL))
        (w * 2).sum().backward()
        """, sim=1, start=True)
    peak = peaks(run, 128 + signal.SIGKILL)["cuda:0"]
    check_sums(peak)
    assert by_kind(peak)["not known"] == peak["listed"] >= 1 << 20


def test_a_forked_child_has_a_peak_of_its_own(run_python):
    run = run_python("""
        import os, torch
        def iterate(width):
            w = torch.ones(width, requires_grad=True)
            for _ in range(3):
                (w * 2).sum().backward()
        iterate(1 << 20)
        pid = os.fork()
        if pid == 0:
            iterate(1 << 12)
            os._exit(0)
        os.waitpid(pid, 0)
        """)
    assert run.status == 0, run.stderr
    listed = sorted(process["peak_memory"][0]["listed"] for process in run.report["run"]["processes"])
    assert len(listed) == 2 and listed[0] < 2 << 20 < 4 << 20 <= listed[1]


def test_two_threads_that_train_at_once_run_as_ever(run_python):
    run = run_python("""
        import threading, torch
        def work():
            w = torch.ones(1 << 12, device="cuda", requires_grad=True)
            for _ in range(50):
                w.grad = None
                (w * 2).sum().backward()
            results.append(w.grad.sum().item())
        results = []
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(sorted(set(results)), len(results))
        """, sim=1)
    assert run.status == 0 and run.stdout.split() == ["[8192.0]", "4"], run.stderr
    check_sums(peaks(run)["cuda:0"])


def test_view_shows_it_in_80_columns(trained, devsan):
    shown = subprocess.run([devsan, "view", "--memory", trained.out], capture_output=True, text=True, check=True).stdout
    assert "in tensors when the backward of step" in shown
    assert "optimizer state" in shown and "activations" in shown and "By the line that made it" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())
