# source: https://github.com/facebookresearch/optimizers/issues/3
# mechanism: what an optimizer of one's own keeps beside its state is read on the host, and put back as it came
# phase: first step after resuming; failing op: aten::matmul
# expect: raises
import io

import torch
from torch import nn


class Whiten:
    def __init__(self, named, rate):
        self.named, self.rate = dict(named), rate
        self.factors = {}

    @torch.no_grad()
    def step(self):
        for name, weight in self.named.items():
            if name not in self.factors:
                self.factors[name] = [torch.eye(size, device=weight.device) for size in weight.shape]
            left, right = self.factors[name]
            weight.sub_(self.rate * (left @ weight.grad @ right))  # RAISE

    def state(self):
        return {"rate": self.rate, "factors": {name: tuple(pair) for name, pair in self.factors.items()}}

    def restore(self, saved):
        self.rate = saved["rate"]
        for name, pair in saved["factors"].items():
            self.factors[name] = list(pair)  # ROOT


def train(model, whiten):
    model(torch.randn(4, 5, device="cuda")).square().mean().backward()
    whiten.step()


model = nn.Linear(5, 3, bias=False).cuda()
whiten = Whiten(model.named_parameters(), 0.1)
train(model, whiten)
file = io.BytesIO()
torch.save(whiten.state(), file)
file.seek(0)
whiten.restore(torch.load(file, map_location="cpu"))  # ALSO
train(model, whiten)
