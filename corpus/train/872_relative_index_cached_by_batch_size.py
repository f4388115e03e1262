# source: unit8co/darts#3052, fix PR#3053
# mechanism: [plain attribute tensor] index cached in forward and rebuilt only when the batch size changes; the model moves after training, the cached tensor does not
# phase: inference after training; failing op: aten::cat
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Forecaster(nn.Module):
    def __init__(self, past, future):
        super().__init__()
        self.past, self.future = past, future
        self.batch_size_last = -1
        self.relative_index = None  # ROOT
        self.proj = nn.Linear(3, 1)

    def get_relative_index(self, n, device):
        index = torch.arange(self.past + self.future, dtype=torch.float, device=device)
        return (index / (self.past - 1)).reshape(1, -1, 1).repeat(n, 1, 1)

    def forward(self, x):
        n = x.shape[0]
        if n != self.batch_size_last:  # ALSO
            self.relative_index = self.get_relative_index(n, x.device)
            self.batch_size_last = n
        return self.proj(torch.cat([x, self.relative_index], dim=-1))  # RAISE  # ALSO

series = torch.randn(4, 6, 2)
model = Forecaster(4, 2).to(dev)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(2):
    model(series.to(dev)).pow(2).mean().backward()
    opt.step()
model.to("cpu")
forecast = model(series)
