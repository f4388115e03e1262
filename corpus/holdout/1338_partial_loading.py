# source: Comfy-Org/ComfyUI#15193
# mechanism: with partial offload a layer casts the weights of its Linear parts to the input's device on the fly, and the layer's own bare parameters, which no such operation wraps, stay on the CPU
# expect: raises
import torch
import torch.nn.functional as F
from torch import nn


def cast_to_device(tensor, device, dtype=None):
    return tensor.to(device=device, dtype=dtype or tensor.dtype)


class ManualCast:
    class Linear(nn.Linear):
        def forward(self, x):
            weight = cast_to_device(self.weight, x.device, x.dtype)
            bias = None if self.bias is None else cast_to_device(self.bias, x.device, x.dtype)
            return F.linear(x, weight, bias)

    class Embedding(nn.Embedding):
        def forward(self, ids):
            return F.embedding(ids, cast_to_device(self.weight, ids.device))

    class RMSNorm(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(dim))

        def forward(self, x):
            scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
            return x * scale * cast_to_device(self.weight, x.device)


class GatedDeltaNet(nn.Module):
    def __init__(self, dim, heads, ops):
        super().__init__()
        self.heads, self.head_dim = heads, dim // heads
        self.qkv = ops.Linear(dim, 3 * dim, bias=False)
        self.in_a = ops.Linear(dim, heads)
        self.in_b = ops.Linear(dim, heads)
        self.A_log = nn.Parameter(torch.zeros(heads))
        self.dt_bias = nn.Parameter(torch.ones(heads))
        self.out = ops.Linear(dim, dim, bias=False)

    def decay(self, x):
        a = self.in_a(x)
        g = -self.A_log.float().exp() * F.softplus(a.float() + self.dt_bias.float())  # RAISE # ROOT
        return g.exp()

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.heads, self.head_dim) for y in self.qkv(x).chunk(3, -1))
        beta, gate = torch.sigmoid(self.in_b(x)), self.decay(x)
        state = x.new_zeros(b, self.heads, self.head_dim, self.head_dim)
        outputs = []
        for i in range(t):
            state = state * gate[:, i, :, None, None]
            update = k[:, i, :, :, None] * v[:, i, :, None, :]
            state = state + beta[:, i, :, None, None] * update
            outputs.append((q[:, i, :, None] @ state).flatten(1))
        return self.out(torch.stack(outputs, dim=1))


class HybridLM(nn.Module):
    def __init__(self, ops, vocab=40, dim=8, depth=3):
        super().__init__()
        self.embed = ops.Embedding(vocab, dim)
        self.norms = nn.ModuleList(ops.RMSNorm(dim) for _ in range(depth))
        self.layers = nn.ModuleList(GatedDeltaNet(dim, 2, ops) for _ in range(depth))
        self.head = ops.Linear(dim, vocab, bias=False)

    def forward(self, ids):
        hidden = self.embed(ids)
        for norm, layer in zip(self.norms, self.layers):
            hidden = hidden + layer(norm(hidden))
        return self.head(hidden)


class ModelPatcher:
    def __init__(self, model, load_device):
        self.model, self.load_device = model, torch.device(load_device)

    def units(self):
        yield self.model.embed
        yield self.model.head
        for norm, layer in zip(self.model.norms, self.model.layers):
            yield norm
            yield layer

    def partially_load(self, budget):
        used = 0
        for unit in self.units():
            size = sum(p.numel() for p in unit.parameters())
            if used + size <= budget:
                unit.to(self.load_device)
                used += size
        return used


@torch.no_grad()
def generate(patcher, ids, steps):
    ids = ids.to(patcher.load_device)
    for _ in range(steps):
        token = patcher.model(ids)[:, -1].argmax(-1, keepdim=True)
        ids = torch.cat([ids, token], dim=1)
    return ids.tolist()


if __name__ == "__main__":
    for budget in (100_000, 1300):
        torch.manual_seed(0)
        patcher = ModelPatcher(HybridLM(ManualCast).eval(), "cuda")
        print(patcher.partially_load(budget), generate(patcher, torch.tensor([[1, 2, 3]]), 2))
