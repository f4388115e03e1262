# source: eth-easl/modyn PR#525
# mechanism: results are collected by joining onto an empty tensor, which was made on the CPU
# phase: data; aten::cat
# expect: raises
import torch

dev = torch.device("cuda", 0)


class ReducibleLoss:
    def __init__(self, keep):
        self.keep = keep
        self.reset()

    def reset(self):
        self.indices = []
        self.losses = torch.tensor([])  # ROOT

    def inform(self, indices, training, irreducible):
        self.indices.extend(indices)
        self.losses = torch.cat([self.losses, training - irreducible])  # RAISE  # ALSO

    def select(self):
        best = self.losses.topk(self.keep).indices.tolist()
        return [self.indices[index] for index in best]


def losses(model, x, y):
    return torch.nn.functional.cross_entropy(model(x), y, reduction="none")


model, holdout = torch.nn.Linear(4, 3).to(dev), torch.nn.Linear(4, 3).to(dev)
selection = ReducibleLoss(keep=4)
with torch.no_grad():
    for start in range(0, 16, 8):
        x, y = torch.randn(8, 4, device=dev), torch.randint(0, 3, (8,), device=dev)
        selection.inform(range(start, start + 8), losses(model, x, y), losses(holdout, x, y))
chosen = selection.select()
