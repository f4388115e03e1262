# source: huggingface/peft#583 (pull request), issue #581
# mechanism: [move by name] whoever wraps a layer moves the new parts whose name has the adapter's prefix; a counter of ranks, a parameter too, has another name and stays on the CPU
# phase: forward; failing op: aten::div (cuda 3-D / cpu 1-D of one element)
# expect: raises
import torch
import torch.nn as nn


class PrunableLinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base, self.alpha = base, alpha
        self.svd_left = nn.ParameterDict()
        self.svd_right = nn.ParameterDict()
        self.svd_values = nn.ParameterDict()
        self.live_ranks = nn.ParameterDict()
        self.add("default", rank)

    def add(self, task, rank):
        self.svd_right[task] = nn.Parameter(torch.randn(rank, self.base.in_features) * 0.02)
        self.svd_left[task] = nn.Parameter(torch.randn(self.base.out_features, rank) * 0.02)
        self.svd_values[task] = nn.Parameter(torch.zeros(rank, 1))
        self.live_ranks[task] = nn.Parameter(torch.zeros(1), requires_grad=False)  # ALSO
        self.live_ranks[task].data.fill_(float(rank))

    def forward(self, x, task="default"):
        scaled = self.svd_right[task] * self.svd_values[task]
        delta = x @ scaled.T @ self.svd_left[task].T
        return self.base(x) + delta * self.alpha / (self.live_ranks[task] + 1e-5)  # RAISE


def wrap(block, names, **options):
    for name in names:
        old = getattr(block, name)
        new = PrunableLinear(old, **options)  # ALSO
        setattr(block, name, new)
        for path, part in new.named_modules():
            if "svd_" in path:  # ROOT
                part.to(old.weight.device)
    return block


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x):
        return self.down(torch.nn.functional.silu(self.up(x)))


block = wrap(FeedForward().to("cuda:0"), ["up", "down"], rank=4, alpha=8)
out = block(torch.randn(2, 3, 16, device="cuda:0"))
out.pow(2).mean().backward()
