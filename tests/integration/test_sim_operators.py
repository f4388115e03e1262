"""Copies between devices, transforms and optimizers on simulated devices give the CPU's numbers; what is not covered says so."""

import pytest

COPIES = """
import torch
from torch.cuda import comm, nccl
source = torch.arange(6.0, device="cuda")
assert [str(t.device) for t in comm.broadcast(source, [0, 1])] == ["cuda:0", "cuda:1"]
first, second = comm.broadcast_coalesced([source, source * 2], [0, 1])
assert second[1].tolist() == [0, 2, 4, 6, 8, 10] and second[0].device.index == 1
parts = comm.scatter(torch.arange(6.0), [0, 1], chunk_sizes=[2, 4])
assert [part.tolist() for part in parts] == [[0, 1], [2, 3, 4, 5]] and parts[1].device.index == 1
assert comm.gather(parts, destination=1).tolist() == [0, 1, 2, 3, 4, 5]
assert comm.gather(parts, destination="cpu").device.type == "cpu"
assert comm.reduce_add([torch.ones(2, device="cuda:0"), torch.ones(2, device="cuda:1")]).tolist() == [2, 2]
pair = [torch.full((2,), 3.0, device="cuda:0"), torch.full((2,), 4.0, device="cuda:1")]
nccl.all_reduce(pair)
assert [t.tolist() for t in pair] == [[7, 7], [7, 7]]
gathered = [torch.empty(4, device=f"cuda:{index}") for index in (0, 1)]
nccl.all_gather([torch.zeros(2, device="cuda:0"), torch.ones(2, device="cuda:1")], gathered)
assert gathered[0].tolist() == gathered[1].tolist() == [0, 0, 1, 1]

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2))
inputs = torch.randn(5, 4)
model(inputs).square().sum().backward()
expected = [parameter.grad.clone() for parameter in model.parameters()]
model.zero_grad()
parallel = torch.nn.DataParallel(model.cuda())
outputs = parallel(inputs.cuda())
assert outputs.shape == (5, 2) and outputs.device.index == 0
outputs.square().sum().backward()
torch.testing.assert_close([parameter.grad.cpu() for parameter in model.parameters()], expected)
print("equal")
"""

TRANSFORMS = """
import torch
from torch.utils.checkpoint import checkpoint
def everything(device):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).to(device)
    parameters = dict(model.named_parameters())
    inputs = torch.randn(5, 4, generator=torch.Generator().manual_seed(1)).to(device)
    def loss(parameters, x):
        return torch.func.functional_call(model, parameters, (x,)).square().sum()
    results = [torch.func.vmap(torch.func.grad(loss), (None, 0))(parameters, inputs)]
    results.append(torch.func.jvp(lambda x: loss(parameters, x), (inputs,), (torch.ones_like(inputs),)))
    results.append(torch.func.jacrev(model)(inputs[0]))
    results.append(torch.func.hessian(lambda x: loss(parameters, x))(inputs[0]))
    x = inputs.clone().requires_grad_()
    checkpoint(model, x, use_reentrant=False).square().sum().backward()
    results.append(x.grad)
    compiled = torch.compile(model, backend="eager")
    y = inputs.clone().requires_grad_()
    compiled(y).square().sum().backward()
    results.append(y.grad)
    tensors = torch.utils._pytree.tree_leaves(results)
    assert all(tensor.device.type == device for tensor in tensors)
    return [tensor.detach().cpu() for tensor in tensors]
torch.testing.assert_close(everything("cuda"), everything("cpu"))
def optimize(device, make):
    torch.manual_seed(0)
    parameters = [torch.nn.Parameter(torch.randn(3, 3).to(device)) for _ in range(2)]
    optimizer = make(parameters)
    for step in range(3):
        for parameter in parameters:
            parameter.grad = torch.full_like(parameter, step + 0.5)
        optimizer.step()
    return [parameter.detach().cpu() for parameter in parameters]
for make in (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD, torch.optim.Adagrad):
    for options in ({"foreach": True}, {"fused": True}):
        torch.testing.assert_close(optimize("cuda", lambda p: make(p, lr=0.1, **options)),
                                   optimize("cpu", lambda p: make(p, lr=0.1)))
def attend(device, attention):
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 3, 5, 8).to(device).requires_grad_() for _ in range(3))
    outputs = attention(query, key, value)
    return [outputs, *torch.autograd.grad(outputs.square().sum(), (query, key, value))]
expected = attend("cpu", lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True))
attention = torch.nn.functional.scaled_dot_product_attention
torch.testing.assert_close([t.cpu() for t in attend("cuda", lambda q, k, v: attention(q, k, v, is_causal=True))], expected)
print("equal")
"""


@pytest.mark.parametrize("source", [COPIES, TRANSFORMS], ids=["copies between devices", "transforms"])
def test_results_are_those_of_the_cpu(run_python, source):
    result = run_python(source, sim=2)
    assert (result.status, result.stdout.strip()) == (0, "equal"), result.stderr[-3000:]


UNCOVERED = """
import pickle, torch, torch.multiprocessing.reductions as reductions
tensor = torch.ones(2, device="cuda")
for name, action in {
    "sharing": lambda: reductions.reduce_tensor(tensor),
    "history": lambda: torch.cuda.memory._record_memory_history(),
    "snapshot": lambda: torch.cuda.memory._snapshot(),
    "pool": lambda: torch.cuda.MemPool(),
    "event": lambda: torch.cuda.Event(interprocess=True).ipc_handle(),
}.items():
    try:
        action()
        print(name, "passed")
    except NotImplementedError as error:
        assert "devsan's simulated CUDA devices do not cover" in str(error), error
        print(name, "refused")
"""


def test_what_is_not_covered_is_refused_in_words(run_python):
    result = run_python(UNCOVERED, sim=1)
    assert result.status == 0, result.stderr[-3000:]
    assert {line.split()[1] for line in result.stdout.splitlines()} == {"refused"}, result.stdout
