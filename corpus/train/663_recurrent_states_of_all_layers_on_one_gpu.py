# source: huggingface/transformers#30418 (pull request), issue #30367
# mechanism: [per-layer cache] a cache of recurrent states is made on one device for all layers, layers are on two GPUs; each takes its entry by its index
# phase: generation (prefill); failing op: aten::mul / add (cuda:1 x cuda:0)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn


class HybridCache:
    def __init__(self, layers, batch, width, states, device):
        self.seen = 0
        self.recurrent = [torch.zeros(batch, width, states, device=device) for _ in range(layers)]


class SelectiveScan(nn.Module):
    def __init__(self, index, width, states):
        super().__init__()
        self.index = index
        self.log_decay = nn.Parameter(torch.log(torch.arange(1.0, states + 1)).repeat(width, 1))
        self.delta = nn.Linear(width, width)
        self.inject, self.read = nn.Linear(width, states), nn.Linear(width, states)

    def forward(self, x, cache=None):
        delta = nn.functional.softplus(self.delta(x))
        decay = torch.exp(-delta.unsqueeze(-1) * self.log_decay.exp())
        drive = (delta * x).unsqueeze(-1) * self.inject(x).unsqueeze(2)
        if cache is None:
            state = torch.zeros_like(drive[:, 0])
        else:
            state = cache.recurrent[self.index].clone()  # ROOT
        outputs = []
        for t in range(x.shape[1]):
            state = decay[:, t] * state + drive[:, t]  # RAISE
            outputs.append((state * self.read(x)[:, t, None]).sum(-1))
        if cache is not None:
            cache.recurrent[self.index] = state
        return torch.stack(outputs, 1)


class Decoder(nn.Module):
    def __init__(self, placement, width=6, states=4):
        super().__init__()
        self.width, self.states = width, states
        self.layers = nn.ModuleList(SelectiveScan(i, width, states).to(d) for i, d in enumerate(placement))

    def forward(self, x, use_cache=False):
        cache = HybridCache(len(self.layers), x.shape[0], self.width, self.states, x.device) if use_cache else None
        for layer in self.layers:
            x = x.to(layer.log_decay.device)
            x = x + layer(x, cache)
        return x, cache


model = Decoder(["cuda:0", "cuda:0", "cuda:1", "cuda:1"])
prompt = torch.randn(2, 5, 6, device="cuda:0")
with torch.no_grad():
    plain, _ = model(prompt)
    hidden, cache = model(prompt, use_cache=True)
