# source: AutoGPTQ/AutoGPTQ#370
# mechanism: [data not moved] recorded keyword inputs of a block are brought over one by one if they are tensors; a list of tensors among them passes as it is
# phase: forward (calibration); failing op: aten::mul
# expect: raises
import torch
import torch.nn as nn

gpu = torch.device("cuda", 0)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(width, width, bias=False)

    def forward(self, x, keep=None, waves=None, causal=True):
        half = torch.cat([-x[..., 1::2], x[..., ::2]], dim=-1)
        x = x * waves[0] + half * waves[1]  # RAISE
        return self.mix(x) * keep.unsqueeze(-1)


class Recorder:
    """Catches what the first block of a model receives."""

    def __init__(self):
        self.hidden, self.extras = [], []

    def __call__(self, x, **extras):
        self.hidden.append(x)
        self.extras.append(extras)


def replay(block, recorder, where):
    block.to(where)
    energy = 0.0
    for x, extras in zip(recorder.hidden, recorder.extras):
        ready = {}
        for name, value in extras.items():
            if torch.is_tensor(value):
                ready[name] = value.to(where)
            else:
                ready[name] = value  # ROOT
        energy += block(x.to(where), **ready).pow(2).mean().item()
    return energy


angles = torch.outer(torch.arange(6.0), torch.linspace(1.0, 0.1, 8))
recorder = Recorder()
for _ in range(2):
    recorder(torch.randn(3, 6, 8), keep=torch.ones(3, 6), waves=[angles.cos(), angles.sin()], causal=True)
with torch.no_grad():
    print(replay(Block(8), recorder, gpu))
