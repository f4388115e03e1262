# source: https://pytorch.org/docs/stable/generated/torch.load.html
# expect: raises
# Weights and a record are loaded to the host. The model copies its weights; the meter keeps the record as it came, in one of three lines.
import io

import torch
from torch import nn


class Meter:
    def __init__(self):
        self.rounds, self.record = 0, None

    def reset(self):
        self.record = None

    def restore(self, saved):
        mine = saved["meter"]
        self.rounds, self.record = mine["rounds"], mine.get("record")  # ROOT

    def update(self, loss):
        self.rounds += 1
        if self.record is None or bool((loss < self.record).all()):  # RAISE
            self.record = loss.detach()


def run(device, file=None):
    model, meter = nn.Linear(4, 2), Meter()
    if file is not None:
        saved = torch.load(file, map_location="cpu")  # ALSO
        model.load_state_dict(saved["model"])
        meter.restore(saved)
    model.to(device)
    for _ in range(2):
        meter.update(model(torch.ones(3, 4, device=device)).pow(2).mean(0))
    out = io.BytesIO()
    torch.save({"model": model.state_dict(), "meter": {"rounds": meter.rounds, "record": meter.record}}, out)
    out.seek(0)
    return out


file = run("cuda")
run("cuda", file)
