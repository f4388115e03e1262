"""How long steps wait for a DataLoader, as the page and the trace for Perfetto have it."""

import json
import subprocess

import pytest

from harness import timeline

# A data set that takes ten milliseconds for each batch, and twenty milliseconds of something else in each step.
PROGRAM = """
    import sys, threading, time, torch
    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 12
        def __getitem__(self, index):
            time.sleep(0.005)
            return torch.ones(8)
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    def train(batch):
        model(batch).sum().backward()
        optimizer.step()
        time.sleep(0.02)
    {loop}
"""
MICROSECONDS = 1000
LOADER = "torch.utils.data.DataLoader(Data(), batch_size=2{more})"


def program(loop, more=""):
    loader = LOADER.format(more=more)
    return PROGRAM.format(loop=loop.format(loader=loader))


@pytest.fixture
def steps_of(run_python, devsan, tmp_path):
    """Columns of the steps of the process that trains, from the page."""
    def steps(text):
        run = run_python(text)
        assert run.status == 0, run.stderr
        page = tmp_path / "page.html"
        subprocess.run([devsan, "view", run.out, "--html", page], check=True, capture_output=True)
        return timeline(page)
    return steps


EVERY_BATCH = """
    for batch in {loader}:
        train(batch)
"""


def test_the_wait_for_the_next_batch_is_no_rest_of_a_step(steps_of):
    steps = steps_of(program(EVERY_BATCH))
    assert steps["taken"] == 6
    # The last one waits for the end of the data alone.
    assert min(steps["data"][:5]) >= 10 * MICROSECONDS
    assert min(steps["rest"][:5]) >= 20 * MICROSECONDS
    whole = [b - a for a, b in zip(steps["begin"], steps["begin"][1:])]
    columns = ("forward", "backward", "between", "optimizer", "rest", "data")
    for k, length in enumerate(whole):
        assert sum(steps[name][k] for name in columns) == pytest.approx(length, abs=2 * MICROSECONDS)


def test_the_wait_for_workers_is_told(steps_of):
    steps = steps_of(program(EVERY_BATCH, ", num_workers=1, prefetch_factor=1")
                     .replace("time.sleep(0.005)", "time.sleep(0.05)"))
    assert min(steps["data"][:4]) >= 20 * MICROSECONDS, "a batch takes 100 ms, of which the step takes some 20"


WITHIN = """
    batches = iter({loader})
    batch = next(batches)
    for _ in range(5):
        loss = model(batch).sum()
        batch = next(batches)
        loss.backward()
        optimizer.step()
"""


def test_a_wait_within_a_forward_is_none_of_it(steps_of):
    steps = steps_of(program(WITHIN))
    assert min(steps["data"]) >= 10 * MICROSECONDS
    # Of the first, what the first operators of a process take.
    assert all(0 <= forward <= 9 * MICROSECONDS for forward in steps["forward"][1:])


def test_a_data_set_that_reads_another_loader_is_waited_for_once(steps_of):
    loop = """
    class Nested(torch.utils.data.IterableDataset):
        def __iter__(self):
            for batch in {loader}:
                yield batch.mean(0)
    for batch in torch.utils.data.DataLoader(Nested(), batch_size=2):
        train(batch)
    """
    steps = steps_of(program(loop))
    waited = [b - a - rest for a, b, rest in zip(steps["begin"], steps["begin"][1:], steps["rest"])]
    assert all(20 * MICROSECONDS <= data <= whole for data, whole in zip(steps["data"], waited))


def test_a_loader_on_another_thread_is_no_wait_of_the_one_that_trains(steps_of):
    loop = """
    def prefetch():
        for batch in {loader}:
            pass
    train(torch.ones(2, 8))
    other = threading.Thread(target=prefetch)
    other.start()
    for _ in range(3):
        train(torch.ones(2, 8))
    other.join()
    """
    assert steps_of(program(loop))["data"] is None


def test_a_program_without_a_loader_has_no_such_phase(steps_of):
    assert steps_of(program("for _ in range(3): train(torch.ones(2, 8))"))["data"] is None


def test_the_trace_for_perfetto_has_the_phases_of_steps(run_python, devsan, tmp_path):
    run = run_python(program(EVERY_BATCH))
    file = tmp_path / "trace.json"
    subprocess.run([devsan, "view", run.out, "--perfetto", file], check=True, capture_output=True)
    events = json.loads(file.read_text())["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    steps = {e["args"]["step"]: e for e in slices if e["name"].startswith("step ")}
    assert sorted(steps) == list(range(6))
    data = [e for e in slices if e["name"] == "data"]
    assert len(data) >= 5 and all(e["dur"] >= 10 * MICROSECONDS for e in data[:5])
    for name in ("forward", "backward", "optimizer", "data", "rest"):
        for phase in (e for e in slices if e["name"] == name):
            step = steps[phase["args"]["step"]]
            assert step["ts"] <= phase["ts"] and phase["ts"] + phase["dur"] <= step["ts"] + step["dur"] + 0.01
