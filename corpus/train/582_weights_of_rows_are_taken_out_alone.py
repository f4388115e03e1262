# source: own
# mechanism: a step takes the inputs and targets out of a batch and moves them, and takes the weights out as they are
# phase: loss; failing op: aten::mul
# expect: raises
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, row):
        return {"x": torch.randn(3), "y": torch.tensor(float(row % 2)), "weight": torch.tensor(1.0 + row)}


def weighted(outputs, targets, weights):
    return (F.binary_cross_entropy_with_logits(outputs, targets, reduction="none") * weights).mean()  # RAISE


def step(net, batch, device):
    x, y = [batch[name].to(device) for name in ("x", "y")]
    weights = batch["weight"]  # ROOT
    return weighted(net(x).squeeze(-1), y, weights)  # ALSO


net = nn.Linear(3, 1).cuda()
for batch in DataLoader(Rows(), batch_size=3):
    step(net, batch, "cuda").backward()
