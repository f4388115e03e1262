# source: unslothai/unsloth#2862
# mechanism: before each block a helper brings the states and the mask to its GPU; the cached cosines and sines are not among them
# phase: inference; aten::mul
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


def move_to_device(device, *tensors):
    return tuple(t.to(device) if t is not None and t.device != device else t for t in tensors)


class Phases(nn.Module):
    def __init__(self, width, longest):
        super().__init__()
        angles = torch.outer(torch.arange(longest).float(), 0.01 ** torch.linspace(0, 1, width // 2)).repeat(1, 2)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def get_cached(self, length):
        return self.cos[:length], self.sin[:length]


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.ask, self.tell, self.out = (nn.Linear(width, width) for _ in range(3))

    def turn(self, x, cos, sin):
        return x * cos + x.roll(x.shape[-1] // 2, dims=-1) * sin  # RAISE

    def forward(self, x, mask, cos, sin):
        scores = self.turn(self.ask(x), cos, sin) @ self.turn(self.tell(x), cos, sin).mT + mask  # ALSO
        return x + self.out(scores.softmax(-1) @ x)


class TideModel(nn.Module):
    def __init__(self, width=8, blocks=4):
        super().__init__()
        self.enter, self.phases = nn.Linear(1, width).to("cuda:0"), Phases(width, 64).to("cuda:0")
        self.blocks = nn.ModuleList(Block(width).to(f"cuda:{i * 2 // blocks}") for i in range(blocks))

    @torch.inference_mode()
    def forward(self, levels):
        x = self.enter(levels)
        mask = torch.full((x.shape[1],) * 2, float("-inf"), device=x.device).triu(1)
        cos, sin = self.phases.get_cached(x.shape[1])
        for block in self.blocks:
            x, mask = move_to_device(block.ask.weight.device, x, mask)  # ROOT
            x = block(x, mask, cos, sin)  # ALSO
        return x[:, -1].mean(-1)


print(TideModel()(torch.rand(2, 6, 1, device="cuda:0")))
