# source: a variation of https://github.com/Lightning-AI/pytorch-lightning/issues/888
# mechanism: a function that applies another to what is nested enters dicts and lists; pairs of tensors are tuples
# phase: forward; aten::add
# expect: raises
import torch

dev = torch.device("cuda", 0)


def apply_nested(function, data):
    if torch.is_tensor(data):
        return function(data)
    if type(data) is dict:
        return {name: apply_nested(function, part) for name, part in data.items()}
    if type(data) in (list, set):  # ROOT
        return [apply_nested(function, part) for part in data]
    return data  # ALSO


class Recurrent(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inputs, self.hidden = torch.nn.Linear(width, width), torch.nn.Linear(width, width)

    def forward(self, batch):
        hidden, cell = batch["state"]
        outputs = []
        for frame in batch["frames"]:
            gate = (self.inputs(frame) + hidden).sigmoid()  # RAISE
            cell = gate * cell
            hidden = cell.tanh()
            outputs.append(self.hidden(hidden))
        return torch.stack(outputs)


def evaluate(model, batch, device):
    batch = apply_nested(lambda part: part.to(device), batch)
    return model(batch).mean().item()


start = (torch.zeros(2, 4), torch.ones(2, 4))
evaluate(Recurrent(4).to(dev), {"frames": [torch.randn(2, 4) for _ in range(3)], "state": start}, dev)
