# source: huggingface/transformers#23385
# mechanism: a block of the program's own is wrapped to work on the second GPU; the wrapper is found by its place in a list
# phase: forward; aten::add_.Tensor
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.layer = nn.Linear(size, size)

    def forward(self, x, scale):
        return torch.tanh(self.layer(x)) * scale


class Placed(nn.Module):
    def __init__(self, block, index):
        super().__init__()
        self.block = block.to(f"cuda:{index}")

    @property
    def place(self):
        return next(self.block.parameters()).device

    def forward(self, *args):
        if not args:
            return None
        args = [one.to(self.place) for one in args]
        made = self.block(*args)
        return made  # ROOT


class Stack(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.blocks = nn.ModuleList([Placed(Block(size), 0), Placed(Block(size), 1)])

    def forward(self, x):
        scale = torch.full((1,), 0.5, device=x.device)
        for k in range(len(self.blocks)):
            x += self.blocks[k](x, scale)  # RAISE  # ALSO
        return x


stack = Stack(4)
stack(torch.rand(3, 4, device="cuda:0"))
