# source: https://github.com/huggingface/diffusers/issues/6501
# mechanism: a context manager of the program hands out a generator of the host, and the noise is drawn on the GPU
# phase: sampling; failing op: aten::randn.generator
# expect: raises
import contextlib

import torch
from torch import nn


@contextlib.contextmanager
def repeatable(seed):
    flag = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield torch.Generator().manual_seed(seed)  # ROOT
    finally:
        torch.use_deterministic_algorithms(flag)


class Denoiser(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Linear(width + 1, width)

    def sample(self, count, steps, dice):
        device = self.net.weight.device
        rows = torch.randn(count, self.net.out_features, generator=dice, device=device)  # RAISE  # ALSO
        for step in range(steps):
            level = torch.full((count, 1), 1 - step / steps, device=device)
            rows = rows - 0.1 * self.net(torch.cat([rows, level], 1))
        return rows


model = Denoiser(5).to("cuda").eval()
with torch.inference_mode(), repeatable(3) as dice:
    print(model.sample(2, 4, dice).norm())
