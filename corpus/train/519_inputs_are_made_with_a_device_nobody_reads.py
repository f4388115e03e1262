# source: https://github.com/NVIDIA/earth2studio/issues/28
# mechanism: the function that makes inputs of a batch takes the device and never uses it
# phase: forward; failing op: aten::linear
# expect: raises
import torch
from torch import nn


def to_inputs(records, device):
    """Pads the readings of all records, and returns them with the mask of what is there."""
    longest = max(len(record) for record in records)
    padded = torch.zeros(len(records), longest, 2)  # ROOT
    for row, record in zip(padded, records):
        row[: len(record), 0] = torch.tensor(record)
        row[: len(record), 1] = 1.0
    return padded  # ALSO


class Forecast(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.read = nn.Linear(2, width)
        self.tell = nn.Linear(width, 1)

    def forward(self, readings):
        hidden = self.read(readings).relu()  # RAISE
        return self.tell(hidden.amax(1))


def run(model, batches, device):
    model = model.to(device).eval()
    with torch.inference_mode():
        return [model(to_inputs(batch, device)).cpu() for batch in batches]


batches = [[[0.5, 1.5], [2.0]], [[1.0, 0.0, 3.0]]]
print(torch.cat(run(Forecast(4), batches, "cuda")).shape)
