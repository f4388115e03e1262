"""What only CUDA has, and every layout of tensors: simulated devices give the CPU's numbers."""

import pytest

CELLS = """
import torch
def train(device, make, dtype):
    torch.manual_seed(0)
    module = make().to(device, dtype)
    is_cell = isinstance(module, torch.nn.RNNCellBase)
    generator = torch.Generator().manual_seed(1)
    shape = (3, 5) if is_cell else (4, 3, 5)
    inputs = torch.randn(shape, generator=generator).to(device, dtype).requires_grad_()
    outputs = torch.utils._pytree.tree_leaves(module(inputs))
    sum((output.double() ** 2).sum() for output in outputs).backward()
    gradients = [inputs.grad, *(parameter.grad for parameter in module.parameters())]
    assert all(tensor.device.type == device and tensor.dtype == dtype for tensor in [*outputs, *gradients])
    return [tensor.detach().cpu() for tensor in [*outputs, *gradients]]
modules = [lambda: torch.nn.LSTM(5, 6, 2, bidirectional=True), lambda: torch.nn.GRU(5, 6, 2, bidirectional=True),
           lambda: torch.nn.LSTM(5, 6, bias=False, proj_size=2), lambda: torch.nn.GRU(5, 6, bias=False),
           lambda: torch.nn.RNN(5, 6), lambda: torch.nn.LSTMCell(5, 6), lambda: torch.nn.GRUCell(5, 6, bias=False)]
for make in modules:
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-12), (torch.bfloat16, 0.15)):
        torch.testing.assert_close(train("cuda", make, dtype), train("cpu", make, dtype), atol=tolerance, rtol=tolerance)
# One result without a gradient, and a second derivative.
cell = torch.nn.LSTMCell(2, 2).double()
x = torch.randn(1, 2, dtype=torch.double)
def second(cell, x):
    x = x.detach().requires_grad_()
    first, = torch.autograd.grad(cell(x)[1].sum(), x, create_graph=True)
    return torch.autograd.grad(first.square().sum(), x)[0].cpu()
expected = second(cell, x)
torch.testing.assert_close(second(cell.cuda(), x.cuda()), expected)
# Packed sequences
torch.manual_seed(0)
module = torch.nn.LSTM(3, 4)
packed = torch.nn.utils.rnn.pack_sequence([torch.randn(3, 3), torch.randn(2, 3)])
expected = module(packed)[0].data
torch.testing.assert_close(module.cuda()(packed.cuda())[0].data.cpu(), expected)
try:
    torch.nn.LSTMCell(2, 2).cuda()(torch.zeros(1, 2, device="cuda"), (torch.zeros(1, 2), torch.zeros(1, 2)))
except RuntimeError as error:
    assert "Expected all tensors to be on the same device" in str(error), error
else:
    raise AssertionError("a state on the CPU was taken")
print("equal")
"""

LAYOUTS = """
import torch
dense = torch.tensor([[0.0, 2.0, 0.0], [3.0, 0.0, 4.0]])
matrix = torch.randn(3, 2, generator=torch.Generator().manual_seed(0))
for make in (torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr, torch.Tensor.to_sparse_csc,
             lambda t: t.to_sparse_bsr((1, 1))):
    host, device = make(dense), make(dense.cuda())
    assert device.layout == host.layout and device.is_cuda and device.values().is_cuda
    torch.testing.assert_close(device.to_dense().cpu(), dense)
    torch.testing.assert_close((device @ matrix.cuda()).to_dense().cpu(), dense @ matrix)
    torch.testing.assert_close(host.cuda().cpu().to_dense(), dense)
    torch.testing.assert_close(make(dense).to("cuda").clone().to_dense().cpu(), dense)
coordinates = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 0]], [1.0, 2.0, 3.0], (2, 3), device="cuda")
assert not coordinates.is_coalesced() and coordinates.coalesce().values().tolist() == [1.0, 5.0]
coordinates.mul_(2)
assert coordinates.to_dense().tolist() == [[0, 0, 2], [10, 0, 0]]
coordinates.add_(coordinates)  # brings more values
assert coordinates.to_dense().tolist() == [[0, 0, 4], [20, 0, 0]] and coordinates.is_cuda
assert torch.cuda.memory_allocated() > 0
try:
    torch.sparse.mm(coordinates, torch.ones(3, 2))
    raise AssertionError("a dense operand on the CPU was taken")
except RuntimeError as error:
    assert "same device" in str(error) or "CUDA" in str(error) or "cuda" in str(error), error

def embed(device):
    torch.manual_seed(0)
    embedding = torch.nn.Embedding(10, 3, sparse=True).to(device)
    optimizer = torch.optim.SparseAdam(embedding.parameters(), lr=0.1)
    for step in range(4):
        optimizer.zero_grad()
        embedding(torch.tensor([1, 2, 2, step], device=device)).square().sum().backward()
        assert embedding.weight.grad.is_sparse and embedding.weight.grad.device.type == device
        optimizer.step()
    return embedding.weight.detach().cpu()
torch.testing.assert_close(embed("cuda"), embed("cpu"))

rows = [torch.randn(2, 4), torch.randn(3, 4)]
for layout in (torch.strided, torch.jagged):
    nested = torch.nested.nested_tensor(rows, layout=layout, device="cuda")
    assert nested.is_cuda and nested.is_nested
    linear = torch.nn.Linear(4, 2)
    expected = [linear(row) for row in rows]
    result = linear.cuda()(nested)
    torch.testing.assert_close([row.cpu() for row in result.unbind()], expected)
quantized = torch.quantize_per_tensor(dense.cuda(), 0.5, 1, torch.qint8)
assert quantized.is_cuda and quantized.is_quantized
torch.testing.assert_close(quantized.dequantize().cpu(), torch.quantize_per_tensor(dense, 0.5, 1, torch.qint8).dequantize())
print("equal")
"""

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
def attend(device, attention, dtype=torch.float32, heads=3):
    torch.manual_seed(0)
    shapes = [(2, 6, 5, 8), (2, heads, 5, 8), (2, heads, 5, 8)]
    query, key, value = (torch.randn(shape).to(device, dtype).requires_grad_() for shape in shapes)
    outputs = attention(query, key, value)
    return [outputs, *torch.autograd.grad(outputs.square().sum(), (query, key, value))]
composite = lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
flash = lambda q, k, v: torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, is_causal=True)[0]
efficient = lambda q, k, v: torch.ops.aten._scaled_dot_product_efficient_attention(q, k, v, None, True, is_causal=True)[0]
for attention, dtype, heads in ((composite, torch.float32, 6), (composite, torch.float32, 2), (efficient, torch.float32, 6),
                                (efficient, torch.bfloat16, 6), (flash, torch.bfloat16, 6), (flash, torch.bfloat16, 2)):
    tolerance = {"atol": 0.05, "rtol": 0.05} if dtype == torch.bfloat16 else {}
    torch.testing.assert_close([t.cpu() for t in attend("cuda", attention, dtype, heads)],
                               attend("cpu", composite, dtype, heads), **tolerance)
query, keys = torch.randn(1, 2, 3, 8, device="cuda").half(), torch.randn(1, 2, 5, 8, device="cuda").half()
for error, words, attempt in (
        (RuntimeError, "only support fp16 and bf16", lambda: flash(query.float(), query.float(), query.float())),
        (NotImplementedError, "causal flash attention", lambda: flash(query, keys, keys)),
        (RuntimeError, "same batch size", lambda: efficient(query.expand(2, 2, 3, 8), keys, keys))):
    try:
        attempt()
        raise AssertionError(words)
    except error as refusal:
        assert words in str(refusal), refusal
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
class Seen(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.kernel = next((kind for kind in ("flash", "efficient") if f"product_{kind}" in str(function)), self.kernel)
        return function(*args, **(kwargs or {}))
def kernel_of(dtype, shape=(1, 2, 4, 8), allowed=tuple(SDPBackend.__members__.values()), **options):
    query, key = torch.ones(1, 2, 4, 8, dtype=dtype, device="cuda"), torch.ones(shape, dtype=dtype, device="cuda")
    seen = Seen()
    seen.kernel = "composite"
    with seen, sdpa_kernel([backend for backend in allowed if backend != SDPBackend.ERROR]):
        torch.nn.functional.scaled_dot_product_attention(query, key, key, **options)
    return seen.kernel
mask, grouped = torch.zeros(4, 4, dtype=torch.bfloat16, device="cuda"), (1, 1, 4, 8)
assert kernel_of(torch.bfloat16) == kernel_of(torch.half, is_causal=True) == "flash"
assert kernel_of(torch.float32) == kernel_of(torch.bfloat16, attn_mask=mask) == "efficient"
assert kernel_of(torch.float64) == kernel_of(torch.bfloat16, dropout_p=0.5) == "composite"
assert kernel_of(torch.bfloat16, grouped, enable_gqa=True) == "flash"
assert kernel_of(torch.float32, grouped, enable_gqa=True) == "composite"
assert kernel_of(torch.bfloat16, (1, 2, 6, 8), is_causal=True) == "efficient"
assert kernel_of(torch.bfloat16, allowed=[SDPBackend.MATH]) == "composite"
try:
    kernel_of(torch.float32, allowed=[SDPBackend.FLASH_ATTENTION])
    raise AssertionError("flash attention of float32 was computed")
except RuntimeError as refusal:
    assert "No available kernel" in str(refusal), refusal
half = torch.randn(3, 4, device="cuda").half()
product = torch.mm(half, half.t(), out_dtype=torch.float32)
assert product.dtype == torch.float32 and torch.allclose(product, half.float() @ half.float().t())
print("equal")
"""


WIDER_DTYPES = """
import torch, torch.nn.functional as F
# What CUDA takes in half precision and the CPU does not: the CPU's numbers of float32, rounded.
generator = torch.Generator().manual_seed(0)
images, rows = torch.randn(2, 3, 9, 8, generator=generator), torch.randn(4, 5, generator=generator)
targets, sets = torch.tensor([1, 0, 4, 2]), torch.tensor([[1, 3, -1, 0, 0]] * 4)
weight = torch.rand(5, generator=generator).half().float()
for function, operand in (
        (lambda x: F.avg_pool3d(x, 2), images),
        (lambda x: F.interpolate(x, size=(4, 5), mode="bilinear", antialias=True), images),
        (lambda x: F.interpolate(x, size=(4, 5), mode="bicubic", antialias=True), images),
        (lambda x: F.multi_margin_loss(x, targets.to(x.device), weight=weight.to(x)), rows),
        (lambda x: F.multilabel_margin_loss(x, sets.to(x.device), reduction="none"), rows)):
    for dtype in (torch.half, torch.bfloat16):
        weight = weight.to(dtype).float()
        ours = operand.to("cuda", dtype).requires_grad_()
        theirs = operand.to(dtype).float().requires_grad_()
        result, expected = function(ours), function(theirs)
        assert result.is_cuda and result.dtype == dtype and torch.equal(result.cpu(), expected.to(dtype))
        (gradient,) = torch.autograd.grad(result, ours, torch.ones_like(result))
        (wanted,) = torch.autograd.grad(expected, theirs, torch.ones_like(expected))
        assert gradient.dtype == dtype and torch.equal(gradient.cpu(), wanted.to(dtype))
noise = F.rrelu(-torch.ones(1000, device="cuda").half(), 0.25, 0.5, training=True)
assert noise.dtype == torch.half and -0.5 <= noise.min() < -0.45 and -0.3 < noise.max() <= -0.25
inplace = -torch.ones(1000, device="cuda").half()
assert F.rrelu_(inplace, 0.25, 0.5, training=True) is inplace and -0.5 <= inplace.min() < inplace.max() <= -0.25

# Whole numbers are counted by CUDA: a bin is found with integers, limits are cut to them.
numbers = torch.randint(0, 50, (400,), generator=generator)
for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
    for bins, low, high in ((50, 0, 49), (7, 0, 49), (49, 0, 49), (4, 10.9, 30.9)):
        counted = torch.histc(numbers.to("cuda", dtype), bins, low, high)
        inside = numbers[(numbers >= int(low)) & (numbers <= int(high))]
        bin_of = ((inside - int(low)) * bins // (int(high) - int(low))).clamp(max=bins - 1)
        assert counted.dtype == dtype and counted.is_cuda
        assert torch.equal(counted.cpu().long(), torch.bincount(bin_of, minlength=bins)), (dtype, bins)
out = torch.empty(0, dtype=torch.int32, device="cuda")
assert torch.histc(numbers.to("cuda", torch.int32), 50, 0, 49, out=out) is out
assert torch.equal(out.cpu().long(), torch.bincount(numbers, minlength=50))
print("equal")
"""


@pytest.mark.parametrize("source", [CELLS, LAYOUTS, COPIES, TRANSFORMS, WIDER_DTYPES],
                         ids=["recurrent cells", "layouts", "copies between devices", "transforms", "wider dtypes"])
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
