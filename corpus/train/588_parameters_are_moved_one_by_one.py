# source: huggingface/diffusers#10523 (buffers are not among what is moved one by one)
# mechanism: a helper places a model by going through its parameters; statistics of a scaler are buffers and stay
# phase: forward; aten::sub
# expect: raises
import torch
from torch import nn


class Scaler(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("deviation", torch.ones(features))

    def forward(self, x):
        return (x - self.mean) / self.deviation  # RAISE


class Forecaster(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.scaler = Scaler(features)
        self.recurrent = nn.GRUCell(features, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, series):
        state = None
        for step in self.scaler(series).unbind(1):
            state = self.recurrent(step, state)
        return self.out(state)


def place(model, device, dtype=torch.float32):
    for _, weight in sorted(model.named_parameters()):  # ROOT
        with torch.no_grad():
            weight.data = weight.to(device=device, dtype=dtype)
    return model  # ALSO


device = torch.device("cuda")
forecaster = place(Forecaster(5, 8), device)
prediction = forecaster(torch.randn(4, 6, 5, device=device))
prediction.mean().backward()
