# source: pytorch/pytorch#124788
# mechanism: the default device belongs to a thread; a checkpointed block runs again on autograd's, where it is the CPU
# phase: backward; aten::mul in a recomputed forward
# expect: raises
import torch
from torch.utils.checkpoint import checkpoint


class Block(torch.nn.Module):
    def __init__(self, width, drop):
        super().__init__()
        self.up, self.down = torch.nn.Linear(width, 2 * width), torch.nn.Linear(2 * width, width)
        self.drop = drop

    def forward(self, x):
        hidden = torch.nn.functional.gelu(self.up(x))
        keep = (torch.rand(hidden.shape[-1]) > self.drop).float()  # ROOT
        return x + self.down(hidden * keep)  # RAISE  # ALSO


class Encoder(torch.nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block(width, drop=0.1) for _ in range(depth))

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=True)
        return x


torch.set_default_device("cuda")
encoder = Encoder(4, depth=2)
features = torch.randn(3, 4, requires_grad=True)
encoder(features).pow(2).mean().backward()
