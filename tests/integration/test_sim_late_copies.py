"""Asynchronous copies of simulated devices that are done as late as the program's order permits: races show."""

import json
import textwrap

import pytest

PRELUDE = """
import json, torch
told = {}
def pinned(*values):
    return torch.tensor(values).pin_memory()
def device(*values):
    return torch.tensor(values).cuda()
"""


@pytest.fixture
def told(run_python):
    """Runs a program on two simulated devices, late or not, and gives what it told."""

    def run(body, late=True):
        source = PRELUDE + textwrap.dedent(body) + "\nprint(json.dumps(told))\n"
        flags = ["--sim-late-copies"] if late else []
        result = run_python(source, sim=2, options=[*flags, "--quiet"])
        assert result.status == 0, result.stderr
        return json.loads(result.stdout.splitlines()[-1])

    return run


READ_EARLY = """
    host = pinned(0, 0)
    host.copy_(device(1, 2), non_blocking=True)
    told["early"] = host.tolist()
    torch.cuda.synchronize()
    told["after"] = host.tolist()
"""


def test_a_target_on_the_host_holds_its_old_values_until_the_host_waits(told):
    assert told(READ_EARLY) == {"early": [0, 0], "after": [1, 2]}


def test_copies_are_done_at_once_unless_asked_to_be_late(told):
    assert told(READ_EARLY, late=False) == {"early": [1, 2], "after": [1, 2]}


def test_a_source_that_is_overwritten_early_sends_the_new_values(told):
    assert told("""
        buffer = pinned(1, 2)
        sent = buffer.to("cuda", non_blocking=True)
        buffer.fill_(7)
        told["overwritten"] = sent.tolist()
        buffer.copy_(torch.tensor([3, 4]))
        sent = buffer.to("cuda", non_blocking=True)
        torch.cuda.current_stream().synchronize()
        buffer.fill_(7)
        told["waited"] = sent.tolist()
    """) == {"overwritten": [7, 7], "waited": [3, 4]}


def test_another_stream_sees_a_copy_only_behind_a_wait(told):
    assert told("""
        side = torch.cuda.Stream()
        for name, wait in (("without", False), ("with", True)):
            target = torch.zeros(2, dtype=torch.int64, device="cuda")
            with torch.cuda.stream(side):
                target.copy_(pinned(1, 2), non_blocking=True)
            if wait:
                torch.cuda.current_stream().wait_stream(side)
            told[name] = (target * 10).tolist()
    """) == {"without": [0, 0], "with": [10, 20]}


@pytest.mark.parametrize("wait", [
    "torch.cuda.synchronize()",
    "torch.cuda.current_stream().synchronize()",
    "event.synchronize()",
    "assert event.query()",
    "assert torch.cuda.current_stream().query()",
    "device(3).item()",
    "device(3).cpu()",
    "torch.nonzero(device(0, 3))",
    "device(1, 2)[device(0, 1) > 0]",
    "bool(device(1) > 0)",
    "print(device(1))",
])
def test_every_way_to_wait_completes_the_copy(told, wait):
    assert told(f"""
        host = pinned(0)
        host.copy_(device(5), non_blocking=True)
        event = torch.cuda.Event()
        event.record()
        {wait}
        told["value"] = host.item()
    """) == {"value": 5}


@pytest.mark.parametrize("no_wait", [
    "early.synchronize()",
    "torch.cuda.Stream().synchronize()",
    "torch.cuda.synchronize(1)",
    "other = torch.ones(2, device='cuda') + 1",
    "torch.tensor([1]).pin_memory().cuda(non_blocking=True)",
    "event = torch.cuda.Event(); event.record(); torch.cuda.Stream().wait_event(event)",
])
def test_what_does_not_cover_the_copy_does_not_complete_it(told, no_wait):
    assert told(f"""
        early = torch.cuda.Event()
        early.record()
        host = pinned(0)
        host.copy_(device(5), non_blocking=True)
        {no_wait}
        told["value"] = host.item()
    """) == {"value": 0}


def test_a_copy_to_the_host_sends_what_its_stream_had_computed_then(told):
    assert told("""
        host, value = pinned(0), device(1)
        host.copy_(value, non_blocking=True)
        value.add_(1)
        torch.cuda.synchronize()
        told["value"] = host.item()
    """) == {"value": 1}


def test_a_stream_copies_there_and_back_through_one_buffer_in_order(told):
    assert told("""
        buffer = pinned(0, 0)
        buffer.copy_(device(1, 2), non_blocking=True)
        back = buffer.to("cuda:0", non_blocking=True)
        told["back"] = back.tolist()
        first = torch.cuda.Stream()
        with torch.cuda.stream(first):
            buffer.copy_(device(3, 4), non_blocking=True)
        second = torch.cuda.Stream()
        second.wait_stream(first)
        with torch.cuda.stream(second):
            back = buffer.to("cuda:0", non_blocking=True)
        second.synchronize()
        told["over two streams"] = back.tolist()
    """) == {"back": [1, 2], "over two streams": [3, 4]}


def test_a_wait_for_one_device_covers_what_it_waited_for_on_another(told):
    assert told("""
        host = pinned(0)
        value = device(5)
        host.copy_(value, non_blocking=True)
        value.to("cuda:1")
        torch.cuda.synchronize(1)
        told["value"] = host.item()
    """) == {"value": 5}


def test_memory_that_is_not_pinned_is_copied_at_once(told):
    assert told("""
        told["to host"] = torch.tensor([0, 0]).copy_(device(1, 2), non_blocking=True).tolist()
        source = torch.tensor([1, 2])
        sent = source.to("cuda", non_blocking=True)
        source.fill_(7)
        told["to device"] = sent.tolist()
        source = pinned(1, 2)
        converted = source.to("cuda", torch.float32, non_blocking=True)
        source.fill_(7)
        told["converted on the host first"] = converted.tolist()
    """) == {"to host": [1, 2], "to device": [1, 2], "converted on the host first": [1.0, 2.0]}


def test_pytorch_pins_what_it_brings_to_the_host_without_waiting(told):
    assert told("""
        brought = device(1, 2).to("cpu", non_blocking=True)
        told["early"] = brought.tolist() == [1, 2]
        torch.cuda.synchronize()
        told["after"] = brought.tolist() == [1, 2]
    """) == {"early": False, "after": True}


def test_conversions_and_slices_arrive_as_they_should(told):
    assert told("""
        host = torch.zeros(2, 3).pin_memory()
        host[1].copy_(device(1, 2, 3), non_blocking=True)
        rows = torch.arange(6).view(2, 3).pin_memory()
        columns = torch.zeros(3, 2, dtype=torch.int64, device="cuda")
        columns.t().copy_(rows, non_blocking=True)
        spread = torch.zeros(2, 2).pin_memory()
        spread.copy_(device(8, 9), non_blocking=True)
        told["columns"] = columns.tolist()
        torch.cuda.synchronize()
        told["row"] = host.tolist()
        told["spread"] = spread.tolist()
    """) == {
        "columns": [[0, 3], [1, 4], [2, 5]], "row": [[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]],
        "spread": [[8.0, 9.0], [8.0, 9.0]],
    }


def test_a_target_that_is_freed_takes_no_memory_and_no_copy(told):
    assert told("""
        sent = torch.zeros(1 << 20).pin_memory().to("cuda", non_blocking=True)
        del sent
        told["held"] = torch.cuda.memory_allocated()
        torch.cuda.synchronize()
        storage = torch.ones(4).pin_memory().to("cuda", non_blocking=True)
        storage.untyped_storage().resize_(0)
        torch.cuda.synchronize()
        told["shrunk"] = storage.untyped_storage().nbytes()
    """) == {"held": 0, "shrunk": 0}


def test_threads_that_copy_and_wait_get_their_own_values(told):
    assert told("""
        import threading
        wrong = []
        def work(number):
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                for round in range(200):
                    source = pinned(number, round)
                    sent = source.to("cuda", non_blocking=True)
                    back = pinned(0, 0)
                    back.copy_(sent * 2, non_blocking=True)
                    stream.synchronize()
                    if back.tolist() != [2 * number, 2 * round]:
                        wrong.append((number, round))
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        told["wrong"] = wrong
    """) == {"wrong": []}


TRAINING = """
    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
    loader = torch.utils.data.DataLoader(data, batch_size=8, pin_memory=True, num_workers={workers})
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    kept = []
    for batch, wanted in loader:
        batch, wanted = batch.cuda(non_blocking=True), wanted.cuda(non_blocking=True)
        loss = torch.nn.functional.mse_loss(model(batch), wanted)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        host = torch.empty((), pin_memory=True)
        host.copy_(loss.detach(), non_blocking=True)
        kept.append(host)
    torch.cuda.synchronize()
    told["losses"] = [loss.item() for loss in kept]
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_a_training_that_waits_where_it_should_has_the_same_losses(told, workers):
    body = TRAINING.format(workers=workers)
    assert told(body) == told(body, late=False)
