# source: https://github.com/sbi-dev/sbi/issues/1954
# mechanism: an object that remembers where it was made is read from a file, and goes on making tensors there
# phase: sampling; failing op: aten::mul.Tensor
# expect: raises
import io

import torch
from torch import nn


class Box:
    def __init__(self, low, high, device):
        self.low, self.high, self.device = low, high, device

    def draw(self, count):
        share = torch.rand(count, len(self.low), device=self.device)
        floor = torch.tensor(self.low, device=self.device)
        return floor + share * (torch.tensor(self.high, device=self.device) - floor)


class Posterior:
    def __init__(self, file, flow):
        self.flow = flow
        self.prior = torch.load(file, weights_only=False)  # ROOT

    def proposals(self, seen, count):
        weight = self.flow(seen).exp()
        return self.prior.draw(count) * weight  # RAISE  # ALSO


file = io.BytesIO()
torch.save(Box([-1.0, 0.0], [1.0, 3.0], "cpu"), file)
file.seek(0)
posterior = Posterior(file, nn.Linear(3, 2).to("cuda"))
print(posterior.proposals(torch.randn(1, 3, device="cuda"), 5))
