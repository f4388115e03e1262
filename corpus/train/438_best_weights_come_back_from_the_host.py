# source: none; early stopping keeps the best weights in host memory and puts them back by `.data`
# mechanism: all parameters of a model are given values that were parked on the CPU; nothing brings them back
# phase: forward; aten::linear
# expect: raises
import torch
from torch import nn


class Best:
    def __init__(self):
        self.score, self.values = float("inf"), {}

    def look(self, score, model):
        if score < self.score:
            self.score = score
            self.values = {name: p.detach().cpu().clone() for name, p in model.named_parameters()}

    def put_back(self, model):
        for name, p in model.named_parameters():
            p.data = self.values[name]  # ROOT


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(6, 8), nn.Linear(8, 1)

    def forward(self, past):
        return self.outer(torch.relu(self.inner(past)))  # RAISE


model = Forecast().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
past, future = torch.randn(16, 6, device="cuda"), torch.randn(16, 1, device="cuda")
best = Best()
for _ in range(4):
    loss = (model(past) - future).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    best.look(loss.item(), model)
best.put_back(model)
print(model(past).mean().item())
