# source: lucidrains/rotary-embedding-torch PR#48, unslothai/unsloth PR#840
# mechanism: a cache of angles is filled by a dry run on the CPU and outlives the move of its module
# phase: forward; aten::mul
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Rotary(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("frequencies", 1.0 / 10000 ** (torch.arange(0, width, 2) / width))
        self.cache = {}

    def forward(self, x):
        length = x.shape[0]
        if length not in self.cache:  # ALSO
            positions = torch.arange(length, device=self.frequencies.device)
            self.cache[length] = torch.outer(positions, self.frequencies).cos()  # ROOT
        return x * self.cache[length]  # RAISE  # ALSO


rotary = Rotary(8)
rotary(torch.randn(5, 4))  # shapes are checked before the model is moved
rotary.to(dev)
rotary(torch.randn(5, 4, device=dev))
