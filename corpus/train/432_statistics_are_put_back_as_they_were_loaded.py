# source: decoderesearch/SAELens#731
# mechanism: a buffer of a loss is replaced by an entry of a checkpoint that was read to the CPU; the rest is copied
# phase: forward; aten::sub
# expect: raises
import io

import torch
from torch import nn


class Whitened(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))

    def forward(self, x):
        centred = x - self.mean  # RAISE
        self.follow(x)
        return centred.square().mean()

    @torch.no_grad()
    def follow(self, x):
        self.mean = self.mean * 0.9 + x.mean(0) * 0.1


def resume(file, model, loss):
    file.seek(0)
    state = torch.load(file, map_location="cpu")  # ALSO
    model.load_state_dict(state["model"])
    loss.mean = state["mean"]  # ROOT
    return state["epoch"] + 1


def train(file, epochs, first=0):
    model = nn.Linear(4, 3).cuda()
    loss = Whitened(3).cuda()
    if first:
        first = resume(file, model, loss)
    for epoch in range(first, epochs):
        value = loss(model(torch.randn(8, 4, device="cuda")))
        value.backward()
        file.seek(0)
        torch.save({"epoch": epoch, "model": model.state_dict(), "mean": loss.mean}, file)
    return value.item()


checkpoint = io.BytesIO()
print(train(checkpoint, 1))
print(train(checkpoint, 2, first=1))
