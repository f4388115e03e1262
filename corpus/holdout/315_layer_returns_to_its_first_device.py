# source: https://github.com/spdlearn/spd_learn/pull/16
# mechanism: a layer keeps the device that it was made for, the CPU by default, and sends what it returns there
# phase: forward; aten::conv1d
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Wavelets(torch.nn.Module):
    def __init__(self, count, length, device="cpu"):
        super().__init__()
        self.device = device
        self.widths = torch.nn.Parameter(torch.rand(count, 1) + 0.5)
        self.register_buffer("times", torch.linspace(-1, 1, length))

    def kernels(self):
        scaled = self.times / self.widths
        return (torch.cos(5 * scaled) * torch.exp(-scaled.square())).unsqueeze(1)

    def forward(self, x):
        filtered = torch.nn.functional.conv1d(x.unsqueeze(1), self.kernels(), padding="same")
        return filtered.to(self.device)  # ROOT


class Decoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wavelets = Wavelets(3, 7)
        self.spatial = torch.nn.Conv1d(3, 4, 1)
        self.classify = torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.classify(self.spatial(self.wavelets(x)).mean(-1))  # RAISE


model = Decoder().to(dev)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(2):
    loss = model(torch.randn(2, 20, device=dev)).logsumexp(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
