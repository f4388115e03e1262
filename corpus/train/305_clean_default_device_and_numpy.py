# source: none: a correct program
# mechanism: none; everything made under a default device, a loader told of it, and values that visit NumPy come back
# phase: n/a
# expect: clean
import numpy
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.set_default_device("cuda")


def smooth(values, width):
    kernel = numpy.ones(width) / width
    smoothed = numpy.convolve(values.cpu().numpy(), kernel, mode="same")
    return torch.from_numpy(smoothed).to(values)


class Regressor(torch.nn.Module):
    def __init__(self, observed):
        super().__init__()
        self.scale = torch.full((observed,), 0.5)
        self.net = torch.nn.Sequential(torch.nn.Linear(observed, 8), torch.nn.Dropout(0.1), torch.nn.Linear(8, 1))

    def forward(self, x):
        return self.net(x * self.scale).squeeze(-1)


x = torch.randn(16, 4)
wanted = smooth(x.sum(-1), width=3)
generator = torch.Generator(device="cuda").manual_seed(0)
loader = DataLoader(TensorDataset(x, wanted), batch_size=4, shuffle=True, generator=generator)
model = Regressor(4)
optimizer = torch.optim.AdamW(model.parameters())
history = []
for batch, target in loader:
    loss = torch.nn.functional.mse_loss(model(batch), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.detach())
assert numpy.isfinite(torch.stack(history).cpu().numpy()).all()
