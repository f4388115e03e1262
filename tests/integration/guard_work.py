"""What simulated devices do with their memory, one kind of work after the other, for test_sim_guard.py: prints the
results of each, and how many bytes of guarded pages were open after it."""

import copy
import io
import json
import os

import torch
import torch.nn.functional as F

told, opened = {}, {}
device = torch.device("cuda:0")
kept = torch.ones(3, device="cuda")


def ranges():
    for line in open("/proc/self/maps"):
        begin, end = (int(text, 16) for text in line.split()[0].split("-"))
        yield begin, end, line.split()[1]


# The space that blocks are taken from is one range as long as all of it is closed.
space = next(((b, e) for b, e, _ in ranges() if b <= kept.data_ptr() < e))


def open_bytes():
    return sum(e - b for b, e, flags in ranges() if space[0] <= b and e <= space[1] and "r" in flags)


def dense(tensor):
    if tensor.is_quantized:
        return tensor.dequantize()
    if tensor.is_nested:
        return tensor.to_padded_tensor(0.0)
    return tensor if tensor.layout is torch.strided else tensor.to_dense()


def digest(value):
    if isinstance(value, torch.Tensor):
        return dense(value.detach()).double().cpu().flatten().tolist()[:64]
    if isinstance(value, (list, tuple)):
        return [digest(v) for v in value]
    return value


def work(function):
    torch.manual_seed(0)
    told[function.__name__] = digest(function())
    opened[function.__name__] = open_bytes()


@work
def training():
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
                                torch.nn.Flatten(), torch.nn.Linear(8 * 36, 10)).to(device)
    losses = []
    for options in ({}, {"foreach": True}, {"fused": True}):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, **options)
        scaler = torch.amp.GradScaler("cuda")
        for _ in range(3):
            with torch.autocast("cuda", dtype=torch.float16):
                loss = F.cross_entropy(model(torch.randn(4, 3, 8, 8, device=device)), torch.arange(4, device=device))
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            losses.append(loss)
    return losses


@work
def recurrent():
    lstm = torch.nn.LSTM(4, 6, num_layers=2, bidirectional=True).cuda()
    out, (h, c) = lstm(torch.randn(5, 2, 4, device=device))
    out.sum().backward()
    return out, h, c, [p.grad for p in lstm.parameters()]


@work
def attention():
    layer = torch.nn.TransformerEncoderLayer(16, 4, batch_first=True, dropout=0.1).cuda()
    x = torch.randn(2, 5, 16, device=device, requires_grad=True)
    torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False).square().sum().backward()
    return x.grad


@work
def sparse_and_nested_and_quantized():
    a = torch.eye(4, device=device).to_sparse()
    csr = torch.eye(4, device=device).to_sparse_csr()
    nested = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], device=device)
    q = torch.quantize_per_tensor(torch.randn(4, device=device), 0.1, 3, torch.quint8)
    return [a @ torch.ones(4, 2, device=device), (a + a).coalesce(), csr @ torch.ones(4, 1, device=device),
            nested * 2, q]


@work
def views_and_shapes():
    x = torch.arange(24.0, device=device)
    y = x.view(4, 6)
    parts = [*y.split(2), y.t(), y[1:, ::2], y.unfold(1, 2, 2), torch.view_as_complex(x.view(12, 2)).real,
             *y.unbind(1), y.expand(2, 4, 6), y.diagonal()]
    y.mul_(2)
    x.resize_(40)
    x[24:] = 1
    z = torch.empty(0, device=device)
    torch.cat([x, x], out=z)
    w = torch.empty(0, device=device).set_(x.untyped_storage(), 2, (5,), (1,))
    v = torch.empty(0, device=device).set_(x.untyped_storage(), 0, (60,), (1,))
    v[40:] = 0
    x.untyped_storage().resize_(400)
    return [p.clone() for p in parts], z, w, v, x, x[x > 3], x.nonzero(), x.unique(return_counts=True), x.max().item()


@work
def copies():
    x = torch.arange(6, device=device)
    pinned = torch.zeros(6, dtype=torch.int64).pin_memory()
    pinned.copy_(x, non_blocking=True)
    torch.cuda.synchronize()
    return [x.cpu(), pinned, x.to("cuda:1"), x.to("cuda:1").double(), copy.deepcopy(x),
            torch.tensor([1, 2], device=device), torch.as_tensor([3], device=device), torch.from_dlpack(x) + 1,
            x.tolist(), x.sum().item(), x[::2].half()]


@work
def storages():
    x = torch.arange(6.0, device=device)
    s = x.untyped_storage()
    buffer = io.BytesIO()
    torch.save({"x": x, "model": torch.nn.Linear(2, 2).cuda().state_dict()}, buffer)
    buffer.seek(0)
    loaded = torch.load(buffer, map_location="cuda:1")
    buffer.seek(0)
    on_host = torch.load(buffer, map_location="cpu")
    clone = s.clone()
    clone.fill_(0)
    t = x.storage()
    return loaded["x"], list(loaded["model"].values()), on_host["x"], list(s.tolist())[:8], s.cpu().tolist(), \
        t[2], list(t), torch.tensor(t.tolist()), clone.tolist()


@work
def graphs():
    x = torch.ones(4, device=device)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        y = x * 3
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = (x * 3 + torch.rand(4, device=device)).relu()
    x.fill_(2)
    graph.replay()
    graph.replay()
    return y


@work
def functional_and_hooks():
    w = torch.randn(3, 3, device=device, requires_grad=True)
    jacobian = torch.func.jacrev(lambda a: (a @ a).sum(0))(w)
    batched = torch.vmap(lambda a: a.sin().sum())(w)
    hessian = torch.autograd.functional.hessian(lambda a: a.pow(3).sum(), w)
    grad, = torch.autograd.grad((w ** 2).sum(), w, create_graph=True)
    grad.sum().backward()

    class Saved(torch.autograd.Function):
        @staticmethod
        def forward(context, a):
            context.save_for_backward(a, a * 2)
            return a * 3

        @staticmethod
        def backward(context, grad):
            a, b = context.saved_tensors
            return grad * a * b

    z = Saved.apply(w)
    z.sum().backward()
    return jacobian, batched, hessian, w.grad, z


@work
def random_state():
    state = torch.cuda.get_rng_state()
    first = torch.rand(4, device=device)
    torch.cuda.set_rng_state(state)
    generator = torch.Generator(device="cuda").manual_seed(3)
    return first, torch.rand(4, device=device), torch.randn(3, generator=generator, device=device), \
        torch.randperm(5, device=device), F.dropout(torch.ones(9, device=device))


@work
def linear_algebra():
    a = torch.randn(4, 4, device=device)
    return torch.linalg.svd(a)[1], torch.linalg.inv(a), torch.linalg.qr(a)[0].abs(), torch.fft.rfft(a).abs(), \
        torch.stft(torch.ones(64, device=device), 16, return_complex=True, window=torch.ones(16, device=device)).abs()


@work
def threads_of_backward():
    x = torch.ones(4, device=device, requires_grad=True)
    y = torch.ones(4, device="cuda:1", requires_grad=True)
    (x.to("cuda:1") * y).sum().backward()
    return x.grad, y.grad


@work
def compiled():
    return torch.compile(lambda a: (a.sin() + a.cos()) @ a, backend="eager")(torch.ones(3, 3, device=device))


library = torch.library.Library("guard_work", "DEF")
library.define("twice(Tensor values) -> Tensor")


@torch.library.impl(library, "twice", "CPU")
def twice(values):
    opened["inside an operator"] = open_bytes()
    return torch.from_numpy(values.numpy() * 2)


@work
def an_operator_with_a_kernel_for_the_cpu_alone():
    return torch.ops.guard_work.twice(torch.ones(3, device=device))


@work
def a_child_process():
    child = os.fork()
    if child == 0:
        x = torch.ones(3) * 2
        os._exit(int(x.sum().item()))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), kept


@work
def a_loader():
    data = torch.utils.data.TensorDataset(torch.arange(8.0))
    loader = torch.utils.data.DataLoader(data, 2, num_workers=2, pin_memory=True)
    return [batch.cuda(non_blocking=True) * 2 for batch, in loader]


print(json.dumps([told, opened]))
