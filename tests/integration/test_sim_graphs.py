"""CUDA graphs on simulated devices: a replay computes anew, and a capture refuses what hardware refuses."""

GRAPHS = """
import torch
def refused(action, words):
    try:
        action()
    except (RuntimeError, NotImplementedError) as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"this should have raised: {words}")

static = torch.ones(3, device="cuda")
counter = torch.zeros(1, device="cuda")
weight = torch.full((3, 3), 2.0, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    assert torch.cuda.is_current_stream_capturing()
    hidden = static @ weight
    result = torch.nn.functional.relu(hidden[:2] - 1).cumsum(0)
    counter += 1
    grown = torch.empty(0, device="cuda")
    torch.add(static, 1, out=grown)
assert not torch.cuda.is_current_stream_capturing()
assert counter.item() == 0  # hardware runs nothing while it captures
for step in range(1, 4):
    static.fill_(step)
    graph.replay()
    assert result.tolist() == [6 * step - 1, 2 * (6 * step - 1)], result
    assert counter.item() == step and grown.tolist() == [step + 1] * 3
del static, hidden
graph.replay()  # the memory belongs to the graph

# The shape that the program gives a tensor later is not that of the captured call.
moved = torch.arange(4.0, device="cuda")
shaped = torch.cuda.CUDAGraph()
with torch.cuda.graph(shaped):
    doubled = moved * 2
moved.unsqueeze_(0)
moved.copy_(torch.ones(1, 4))
shaped.replay()
assert doubled.tolist() == [2.0] * 4

torch.cuda.manual_seed(0)
state = torch.cuda.get_rng_state()
noise_graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(noise_graph):
    noise = torch.randn(5, device="cuda")
assert torch.equal(torch.cuda.get_rng_state(), state)
noise_graph.replay()
one = noise.clone()
noise_graph.replay()
assert not torch.equal(one, noise)
torch.cuda.manual_seed(0)
noise_graph.replay()
assert torch.equal(one, noise)

pinned = torch.zeros(2).pin_memory()
copies = torch.cuda.CUDAGraph()
with torch.cuda.graph(copies):
    fed = pinned.to("cuda", non_blocking=True) + 1
pinned.fill_(5)
copies.replay()
assert fed.tolist() == [6, 6]

not_permitted = "operation not permitted when stream is capturing"
not_captured = "without a preceding successful capture" if torch.__version__ < (2, 14) else "capture_end() must have been called"
places = torch.tensor([2, 0], device="cuda")
mask = torch.tensor([True, False, True], device="cuda")
cells = torch.arange(3.0, device="cuda")
indexed = torch.cuda.CUDAGraph()
with torch.cuda.graph(indexed):
    picked = cells[places]
    cells[places] = picked + 1
    cells[mask] = 7.0
    repeated = torch.repeat_interleave(places, output_size=2)
cells.copy_(torch.tensor([1.0, 2.0, 3.0]))
places.copy_(torch.tensor([1, 1]))
mask.copy_(torch.tensor([False, False, True]))
indexed.replay()
assert (picked.tolist(), cells.tolist(), repeated.tolist()) == ([2, 2], [1, 3, 7], [0, 1])

for action in (lambda: counter.item(), lambda: counter.cpu(), lambda: torch.ones(2).cuda(), lambda: cells[mask],
               lambda: cells[torch.tensor([0, 1])], lambda: cells.__setitem__(mask, cells[:1]),
               lambda: torch.nonzero(counter), lambda: torch.cuda.synchronize(), lambda: graph.replay()):
    failed = torch.cuda.CUDAGraph()
    def attempt():
        with torch.cuda.graph(failed):
            refused(action, not_permitted)
    refused(attempt, "previous error during capture")
    refused(failed.replay, not_captured)
    torch.cuda.set_stream(torch.cuda.default_stream())  # a failed capture leaves its stream selected, on hardware too
assert not torch.cuda.is_current_stream_capturing()
refused(lambda: torch.cuda.CUDAGraph().capture_begin(), "non-default stream")
refused(graph.instantiate, "only when keep_graph=true")
kept = torch.cuda.CUDAGraph(keep_graph=True)
refused(kept.instantiate, "capture_end() must have been called")
refused(kept.pool, "without a preceding successful capture")
with torch.cuda.graph(kept, pool=graph.pool()):
    counter.add_(2)
assert kept.pool() == graph.pool()
counter.zero_()
kept.replay()  # instantiates it
kept.instantiate()
kept.replay()
assert counter.item() == 4
if torch.__version__ >= (2, 14):  # the steps of a capture's end, between which torch calls what was registered
    seen = []
    watched = torch.cuda.CUDAGraph()
    watched.register_capture_start_hook(lambda graph: seen.append(torch.cuda.is_current_stream_capturing()))
    watched.register_capture_end_hook(lambda graph: seen.append(torch.cuda.is_current_stream_capturing()))
    watched.register_post_instantiate_hook(lambda graph: seen.append("instantiated"))
    watched.register_replay_end_hook(lambda graph: seen.append(counter.item()))
    with torch.cuda.graph(watched):
        watched._retain_pool(graph.pool())
        counter.add_(1)
    watched.replay()
    assert seen == [True, False, "instantiated", 5], seen
    assert watched.pools() == [watched.pool(), graph.pool()]
entries = cells.to_sparse()
def capture_uncovered():
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        refused(lambda: entries * 2, "do not cover sparse tensors in a captured CUDA graph")
try:
    capture_uncovered()  # the graph would be without it
except torch.AcceleratorError as error:
    assert "previous error during capture" in str(error) and error.error_code == 901, error
else:
    raise AssertionError("a capture without one of its operators succeeded")
torch.cuda.set_stream(torch.cuda.default_stream())

def train(device, wrap):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)).to(device)
    model = wrap(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(1)
    for _ in range(4):
        optimizer.zero_grad()
        batch = torch.randn(6, 4, generator=generator).to(device)
        (model(batch) - 1).square().mean().backward()
        optimizer.step()
    return [parameter.detach().cpu() for parameter in model.parameters()]
graphed = lambda model: torch.cuda.make_graphed_callables(model, (torch.randn(6, 4, device="cuda"),))
torch.testing.assert_close(train("cuda", graphed), train("cpu", lambda model: model))

# A whole step: forward, backward and optimizer.
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
reference = torch.nn.Linear(4, 1)
reference.load_state_dict(model.state_dict())
model.cuda()
batch = torch.zeros(6, 4, device="cuda")
optimizer = torch.optim.Adam(model.parameters(), lr=0.1, capturable=True)
other = torch.optim.Adam(reference.parameters(), lr=0.1)
inputs = [torch.randn(6, 4) for _ in range(5)]
stream = torch.cuda.Stream()
def step(model, optimizer, batch):
    optimizer.zero_grad(set_to_none=True)
    (model(batch) - 1).square().mean().backward()
    optimizer.step()
with torch.cuda.stream(stream):
    batch.copy_(inputs[0])
    step(model, optimizer, batch)
step(reference, other, inputs[0])
whole = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(whole):
    (model(batch) - 1).square().mean().backward()
    optimizer.step()
for data in inputs[1:]:
    batch.copy_(data)
    whole.replay()
    step(reference, other, data)
    torch.testing.assert_close([p.detach().cpu() for p in model.parameters()], list(reference.parameters()))
print("equal")
"""


def test_a_replayed_graph_computes_anew_from_its_static_inputs(run_python):
    result = run_python(GRAPHS, sim=1)
    assert (result.status, result.stdout.strip()) == (0, "equal"), result.stderr[-3000:]
