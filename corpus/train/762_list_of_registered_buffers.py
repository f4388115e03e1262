# source: pytorch/pytorch#29807
# mechanism: [module list not registered] buffers are registered one by one and also collected in a Python list for iteration; .to() replaces the buffers, the list keeps the old tensors
# phase: forward; failing op: aten::mul
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class PyramidWeights(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.levels = []
        for i, n in enumerate(sizes):
            self.register_buffer(f"level_{i}", torch.hann_window(n, periodic=False))
            self.levels.append(getattr(self, f"level_{i}"))  # ROOT

    def forward(self, feats):
        return [f * w for f, w in zip(feats, self.levels)]  # RAISE  # ALSO

sizes = (8, 4, 2)
mod = PyramidWeights(sizes).to(dev)
mod([torch.randn(2, n, device=dev) for n in sizes])
