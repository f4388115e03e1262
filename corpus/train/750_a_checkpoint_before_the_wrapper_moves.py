# source: Lightning-AI/pytorch-lightning#19225
# mechanism: [optimizer state] checkpoint is loaded while the parameters are on the CPU, so the moments are cast to the CPU; setup() then moves the parameters in place, the optimizer's state stays
# phase: first optimizer step after resuming; failing op: AdamW step (foreach)
# expect: raises
import io
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)

class Fabric:
    def __init__(self, device):
        self.device = device

    def setup(self, model, optimizer):
        model.to(self.device)  # ALSO
        return model, optimizer


def build():
    model = nn.Sequential(nn.Linear(10, 8), nn.Tanh(), nn.Linear(8, 1))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3)


def save(file):
    model, optimizer = build()
    model(torch.randn(4, 10)).sum().backward()
    optimizer.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)


def resume(fabric, file):
    model, optimizer = build()
    checkpoint = torch.load(file, map_location="cpu")
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])  # ROOT
    return fabric.setup(model, optimizer)  # ALSO

file = io.BytesIO()
save(file)
model, optimizer = resume(Fabric(dev), file)
model(torch.randn(4, 10, device=dev)).pow(2).mean().backward()
optimizer.step()  # RAISE
