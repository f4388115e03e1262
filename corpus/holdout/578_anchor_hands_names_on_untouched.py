# source: own
# mechanism: a hook object that takes names moves the positional inputs and hands the dictionary of names on as it is
# phase: forward; failing op: aten::masked_fill
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class Anchor:
    def __init__(self, device):
        self.device = device

    def __call__(self, module, args, kwargs):
        moved = tuple(one.to(self.device) for one in args)
        return moved, kwargs  # ROOT


class Reader(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.score = nn.Linear(dim, 1)

    def forward(self, tokens, *, padding):
        scores = self.score(tokens).squeeze(-1)
        return scores.masked_fill(padding, -1e4).softmax(-1)  # RAISE


def on(module, device):
    module.to(device).register_forward_pre_hook(Anchor(device), with_kwargs=True)
    return module


encoder, reader = on(nn.Linear(3, 4), "cuda:0"), on(Reader(4), "cuda:1")
rows = torch.randn(2, 5, 3, device="cuda:0")
reader(encoder(rows), padding=rows.sum(-1) > 1)
