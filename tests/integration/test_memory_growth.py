"""Memory that grows from step to step: what is found, where, and what keeps it; and what must not be taken for it."""

import linecache
import subprocess

import pytest

# A small model on a simulated device; {each} is what a program does in every iteration, with its `loss`.
LOOP = """
    import collections, sys, time, torch
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)).to({device!r})
    optimizer = torch.optim.Adam(model.parameters())
    def train(steps):
        {before}
        for step in range(steps):
            x = torch.randn(64, 64, device={device!r})
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward({backward})
            optimizer.step()
            {each}
            time.sleep({pause})
    train({steps})
"""


def loop(before="pass", each="pass", backward="", device="cuda", steps=80, pause=0.02):
    return LOOP.format(before=before, each=each, backward=backward, device=device, steps=steps, pause=pause)


def growth(run, severities=("warning",)):
    assert run.status == 0, run.stderr
    return [f for f in run.report["findings"] if f["kind"] == "memory-growth" and f["severity"] in severities]


def test_losses_that_are_kept_with_their_graphs(run_python):
    run = run_python(loop("losses = []", "losses.append(loss)", "retain_graph=True"), sim=1)
    [finding] = growth(run)
    assert "loss = model(x).square().mean()" in finding["where"]["source"]
    assert finding["growth"]["device"] == "cuda:0"
    assert finding["growth"]["holder"] == "losses[...]"
    assert finding["growth"]["graph"] is True
    assert finding["growth"]["bytes_per_step"] >= 64 * 256 * 4
    assert ".detach()" in finding["fix"]["text"] and "`losses`" in finding["fix"]["text"]


def test_a_run_of_half_a_second_is_enough(run_python):
    run = run_python("""
        import time

        import torch
        from torch import nn

        net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1)).cuda()
        optimizer = torch.optim.Adam(net.parameters())
        means = []
        for step in range(120):
            rows = torch.randn(128, 64, device="cuda")
            optimizer.zero_grad()
            net(rows).square().mean().backward()
            optimizer.step()
            means.append(net(rows).mean())
            time.sleep(0.004)
        """, sim=1)
    [finding] = growth(run)
    assert "means.append(net(rows).mean())" in finding["where"]["source"]
    assert finding["growth"]["holder"] == "means[...]"


def test_sixty_steps_as_fast_as_they_go_are_enough(run_python):
    run = run_python("""
        import torch

        net, kept = torch.nn.Linear(16, 16).cuda(), []
        for step in range(60):
            loss = net(torch.randn(32, 16, device="cuda")).square().mean()
            loss.backward(retain_graph=True)
            kept.append(loss)
        """, sim=1)
    [finding] = growth(run)
    assert "torch.randn(32, 16" in finding["where"]["source"]
    assert finding["growth"]["device"] == "cuda:0"
    assert finding["growth"]["bytes_per_step"] >= 2 * 32 * 16 * 4


def test_what_an_object_keeps_is_named_by_its_way(run_python):
    before = """
        class History: pass
        history = History()
        history.entries = [{'loss': 0}]"""
    run = run_python(
        loop(before, "history.entries.append({'loss': 0, 'batch': x.clone()})", steps=80), sim=1
    )
    [finding] = growth(run)
    assert finding["growth"]["holder"] == "history.entries[...]['batch']"
    assert finding["growth"]["graph"] is False
    assert "x.clone()" in finding["where"]["source"]
    assert "detach" not in finding["fix"]["text"]


def test_what_a_thread_of_the_program_keeps_is_named(run_python):
    in_thread = loop("kept = []", "kept.append(x.clone())").replace("train(80)", """
    import threading
    thread = threading.Thread(target=train, args=(80,))
    thread.start()
    while thread.is_alive():
        time.sleep(0.01)""")
    run = run_python(in_thread, sim=1)
    [finding] = growth(run)
    assert "x.clone()" in finding["where"]["source"]
    assert finding["growth"]["holder"] == "kept[...]"


def test_what_a_thread_keeps_is_named_while_the_main_one_waits_for_it(run_python):
    in_thread = loop("kept = []", "kept.append(x.clone())").replace("train(80)", """
    import threading
    thread = threading.Thread(target=train, args=(80,))
    thread.start()
    thread.join()""")
    run = run_python(in_thread, sim=1)
    [finding] = growth(run)
    assert "x.clone()" in finding["where"]["source"]
    assert finding["growth"]["holder"] == "kept[...]"


def test_pinned_buffers_that_are_kept(run_python):
    run = run_python(loop("kept = []", "kept.append(torch.empty(1 << 18).pin_memory())"), sim=1)
    [finding] = growth(run)
    assert ".pin_memory()" in finding["where"]["source"]
    assert finding["growth"]["device"] is None
    assert finding["growth"]["holder"] == "kept[...]"
    assert finding["growth"]["bytes_per_step"] == pytest.approx(1 << 20, rel=0.05)


def test_a_tensor_that_is_added_to_over_and_over(run_python):
    run = run_python(loop("seen = torch.zeros(0, 64, device='cuda')", "seen = torch.cat([seen, x])"), sim=1)
    [finding] = growth(run)
    assert "torch.cat" in finding["where"]["source"]
    assert finding["growth"]["holder"] == "seen"
    assert finding["growth"]["bytes_per_step"] == pytest.approx(64 * 64 * 4, rel=0.05)


def test_a_process_that_grows_without_tensors(run_python):
    run = run_python(loop("kept = []", "kept.append(bytes(1) * (1 << 20))", device="cpu", steps=120), sim=None)
    [finding] = growth(run)
    assert finding["where"] is None and finding["growth"]["parts"] == []
    assert finding["growth"]["device"] is None
    assert finding["growth"]["bytes_per_step"] == pytest.approx(1 << 20, rel=0.2)


# Graphs of little tensors: most of what they take are objects of the process.
SMALL_GRAPHS = """
    import time, torch
    net, kept = torch.nn.Linear(16, 16).to({device!r}), []
    for step in range(1500):
        loss = net(torch.randn(32, 16, device={device!r})).square().mean()
        loss.backward(retain_graph=True)
        kept.append({kept})
        time.sleep(0.001)
"""


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_graphs_that_are_kept_are_told_once(run_python, device):
    run = run_python(SMALL_GRAPHS.format(device=device, kept="loss"), sim=int(device == "cuda"))
    [finding] = growth(run)
    assert finding["growth"]["holder"] == "kept[...]"
    assert finding["growth"]["records_per_step"] > 500


def test_what_grows_beside_graphs_and_is_larger_is_told_too(run_python):
    run = run_python(SMALL_GRAPHS.format(device="cuda", kept="(loss, bytes(1) * (1 << 17))"), sim=1)
    of_graphs, of_process = sorted(growth(run), key=lambda finding: not finding["growth"]["parts"])
    assert of_graphs["growth"]["holder"].startswith("kept[...]")
    assert of_process["growth"]["parts"] == []
    assert of_process["growth"]["bytes_per_step"] > 1 << 17


WORKERS = """
    import time, torch
    class Data(torch.utils.data.Dataset):
        def __init__(self):
            self.kept = []
        def __len__(self):
            return 400
        def __getitem__(self, index):
            time.sleep(0.005)
            self.kept.append({item})
            return torch.ones(8)
    if __name__ == "__main__":
        for batch in torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=1):
            pass
"""


def test_a_worker_of_a_data_loader_that_grows(run_python):
    run = run_python(WORKERS.format(item="bytes(1) * (1 << 20)"))
    [finding] = growth(run)
    [main] = [p for p in run.report["run"]["processes"] if p["parent_pid"] not in pids(run)]
    assert finding["pid"] != main["pid"]
    assert finding["where"] is None and finding["growth"]["clock"] == "shared-tensors"
    assert finding["growth"]["bytes_per_step"] == pytest.approx(2 << 20, rel=0.3)


def test_a_worker_that_keeps_tensors_is_found_by_their_line(run_python):
    run = run_python(WORKERS.format(item="torch.ones(1 << 18)"))
    [finding] = growth(run)
    assert "self.kept.append(torch.ones(1 << 18))" in finding["where"]["source"]
    assert finding["growth"]["holder"].endswith("kept[...]")


def pids(run):
    return {process["pid"] for process in run.report["run"]["processes"]}


CLEAN = {
    "nothing": ("pass", "pass"),
    "losses as numbers": ("losses = []", "losses.append(loss.item())"),
    "a deque of the last ones": ("last = collections.deque(maxlen=50)", "last.append(loss.detach())"),
    "a cache of shapes": (
        "cache = {}",
        "n = int(torch.randint(60, ())); cache.setdefault(n, torch.ones(n + 1, 64, device='cuda'))",
    ),
    "an average of weights": (
        "ema = [p.detach().clone() for p in model.parameters()]",
        "[e.lerp_(p.detach(), 0.1) for e, p in zip(ema, model.parameters())]",
    ),
    "a list that is emptied": ("kept = []", "kept.append(x.clone()); kept = kept if len(kept) < 100 else []"),
}


@pytest.mark.parametrize("name", CLEAN)
def test_long_runs_that_give_back_what_they_take_are_quiet(run_python, name):
    before, each = CLEAN[name]
    run = run_python(loop(before, each, steps=2000, pause=0), sim=1)
    assert growth(run, ("warning", "note")) == []


def test_the_first_steps_are_no_growth(run_python):
    before = "pool = [None] * 20"
    each = "pool[min(step, 19)] = torch.ones(1 << 16, device='cuda') if step < 20 else pool[19]"
    assert growth(run_python(loop(before, each), sim=1), ("warning", "note")) == []


SHORT_AND_CLEAN = {
    "nothing": ("pass", "pass"),
    "losses as numbers": ("losses = []", "losses.append(loss.item())"),
    "a deque that is full": ("last = collections.deque(maxlen=15)", "last.append(loss.detach())"),
    "a cache that fills": (
        "cache = {}", "n = step if step < 25 else step % 25; cache.setdefault(n, torch.ones(n + 1, 64, device='cuda'))"
    ),
    "batches kept while it warms up": ("warm = []", "step < 20 and warm.append(x)"),
    "an average of weights": CLEAN["an average of weights"],
    "a list that is emptied": ("kept = []", "kept.append(x.clone()); kept = kept if len(kept) < 12 else []"),
}


@pytest.mark.parametrize("name", SHORT_AND_CLEAN)
def test_short_runs_that_only_begin_are_quiet(run_python, name):
    before, each = SHORT_AND_CLEAN[name]
    run = run_python(loop(before, each, steps=60, pause=0), sim=1)
    assert growth(run, ("warning", "note")) == []


# An evaluation: no backward ends an iteration. {before} may train; {each} is what happens in each of its rounds.
EVALUATION = """
    import torch
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(32, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    rows = torch.utils.data.TensorDataset(torch.randn(6400, 32), torch.randint(0, 10, (6400,)))
    loader = torch.utils.data.DataLoader(rows, 64)

    def train():
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    @torch.no_grad()
    def evaluate():
        kept, right = [], 0
        for x, y in loader:
            out = model(x.cuda())
            right += (out.argmax(-1).cpu() == y).sum().item()
            {each}
        return right

    {before}
    print(evaluate())
    {after}
"""


def evaluation(before="pass", each="pass", after="pass"):
    return EVALUATION.format(before=before, each=each, after=after)


TAP = """seen = []
    model[1].register_forward_hook(lambda module, args, out: seen.append(out))"""


@pytest.mark.parametrize("before", [TAP, "train()\n    " + TAP], ids=["alone", "after a training"])
def test_what_a_hook_collects_over_an_evaluation(run_python, before):
    run = run_python(evaluation(before=before), sim=1)
    [finding] = growth(run)
    assert "out = model(x.cuda())" in finding["where"]["source"]
    assert finding["growth"]["device"] == "cuda:0" and finding["growth"]["clock"] == "rounds"
    assert finding["growth"]["holder"].startswith("seen[...]")
    assert finding["growth"]["bytes_per_step"] == pytest.approx(64 * 512 * 4, rel=0.05)


def test_the_few_bytes_that_an_evaluation_keeps_of_each_batch_are_a_note(run_python):
    run = run_python(evaluation(each="kept.append(out.argmax(-1).cpu())"), sim=1)
    assert growth(run) == []


def test_what_an_evaluation_gives_back_before_the_next_training_is_no_growth(run_python):
    run = run_python(evaluation(each="kept.append(model[:2](x.cuda()))", after="train()"), sim=1)
    assert growth(run, ("warning", "note")) == []


def test_a_model_that_is_moved_parameter_by_parameter_is_no_growth(run_python):
    run = run_python("""
        import torch
        model = torch.nn.Sequential(*(torch.nn.Linear(128, 128) for layer in range(60)))
        model.cuda()
        print(float(model(torch.ones(1, 128, device="cuda")).sum().detach()))
        """, sim=1)
    assert growth(run, ("warning", "note")) == []


def test_many_moves_by_one_line_within_an_iteration_are_no_evaluation(run_python):
    run = run_python(loop(each="parts = [torch.ones(1 << 14).cuda() for part in range(40)]", steps=60, pause=0), sim=1)
    assert growth(run, ("warning", "note")) == []


RUNNING_SUM = """
    import torch
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(32, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).cuda()
    rows = torch.utils.data.TensorDataset(torch.randn(6400, 32), torch.randint(0, 10, (6400,)))

    class Meter:
        def __init__(self):
            self.sum = 0

        def update(self, value):
            self.sum = self.sum + value  # here

    meter = Meter()
    for x, y in torch.utils.data.DataLoader(rows, 64):
        meter.update(torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda()){leaves})
    print(float(meter.sum))
"""


def test_a_running_sum_that_keeps_the_graph_of_every_batch_is_named_with_its_line(run_python):
    run = run_python(RUNNING_SUM.format(leaves=""), sim=1)
    [finding] = growth(run)
    assert finding["growth"]["holder"] == "meter.sum" and finding["growth"]["graph"] is True
    assert finding["growth"]["bytes_per_step"] >= 64 * 512 * 4
    assert "# here" in linecache.getline(finding["root_cause"]["file"], finding["root_cause"]["line"])
    assert ".item()" in finding["fix"]["text"] and finding["fix"]["line"] == finding["root_cause"]["line"]


def test_a_running_sum_of_values_alone_is_no_growth(run_python):
    run = run_python(RUNNING_SUM.format(leaves=".detach()"), sim=1)
    assert growth(run, ("warning", "note")) == []


# Many small layers: the graph of a batch is of many nodes, which stay when its backward has given back all else.
SUM_AFTER_BACKWARD = """
    import time, torch
    torch.manual_seed(0)
    layers = (layer for at in range(100) for layer in (torch.nn.Linear(4, 4), torch.nn.Tanh()))
    net = torch.nn.Sequential(*layers).cuda()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    total, kept = torch.zeros((), device="cuda"), []
    for step in range(200):
        optimizer.zero_grad()
        loss = net(torch.randn(8, 4, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        {each}
        time.sleep(0.01)
    print(float(total))
"""


def test_a_running_sum_after_backwards_is_named_though_no_tensor_grows(run_python):
    run = run_python(SUM_AFTER_BACKWARD.format(each="total = total + loss  # here"), sim=1)
    [finding] = growth(run)
    assert finding["growth"]["holder"] == "total" and finding["growth"]["graph"] is True
    assert finding["growth"]["parts"] == [] and finding["growth"]["device"] is None
    assert "# here" in linecache.getline(finding["root_cause"]["file"], finding["root_cause"]["line"])
    assert ".item()" in finding["fix"]["text"]


def test_a_long_graph_that_is_as_long_each_time_is_not_blamed_for_what_else_grows(run_python):
    each = """total = total.detach()
        for again in range(20): total = total * 0.5 + loss
        kept.append(bytes(1) * (1 << 17))"""
    run = run_python(SUM_AFTER_BACKWARD.format(each=each), sim=1)
    [finding] = growth(run)
    assert finding["growth"]["holder"] is None and finding["where"] is None


STEP_OUTPUTS = """
    import torch
    torch.manual_seed(0)
    net = torch.nn.Linear(32, 10).cuda()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)

    def training_step(x):
        out = net(x)
        loss = out.square().mean()
        return {{"loss": loss, "log": {log}}}

    outputs = []
    for step in range(100):
        result = training_step(torch.randn(64, 32, device="cuda"))
        optimizer.zero_grad()
        result["loss"].backward()
        optimizer.step()
        outputs.append(result)
"""


def test_outputs_of_steps_that_are_kept_with_a_graph_have_the_graph_as_the_cause(run_python):
    log = '{"entropy": out.softmax(-1).log().mean(), "most": out.detach().max()}'
    run = run_python(STEP_OUTPUTS.format(log=log), sim=1)
    [finding] = growth(run)
    assert finding["growth"]["holder"] in ("outputs[...]['loss']", "outputs[...]['log']['entropy']")
    assert finding["growth"]["graph"] is True
    assert ".detach()" in finding["fix"]["text"]


def test_codes_that_are_kept_detached_are_found_within_ninety_steps(run_python):
    run = run_python(loop("codes = []", "codes.append(model[0](x).detach())", steps=90, pause=0), sim=1)
    [finding] = growth(run)
    assert finding["growth"]["holder"] == "codes[...]" and finding["growth"]["graph"] is False
    assert "model[0](x)" in finding["where"]["source"]


def test_view_shows_growth_in_80_columns(run_python, devsan):
    run = run_python(loop("losses = []", "losses.append(loss)", "retain_graph=True"), sim=1)
    shown = subprocess.run([devsan, "view", run.out], capture_output=True, text=True).stdout
    assert "more with every step, kept by `losses`" in " ".join(shown.split())
    assert all(len(line) <= 80 for line in shown.splitlines())
