# source: none; the shape of filter banks that a data set and a loss share by a dictionary of their module
# mechanism: a table is made on the host and moved to its first caller, which is a data set; a key that says nothing of the device gives it to the loss
# phase: loss; aten::linear
# expect: raises
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
kernels = {}


def blur(width, size):
    steps = torch.arange(width, dtype=torch.float32)
    weights = torch.exp(-(steps[:, None] - steps).square() / size)
    return weights / weights.sum(1, keepdim=True)


def smooth(rows, size=2):
    name = f"{rows.shape[-1]}-{size}"  # ROOT
    if name not in kernels:  # ALSO
        kernels[name] = blur(rows.shape[-1], size).to(rows)
    return F.linear(rows, kernels[name])  # RAISE  # ALSO


class Rows(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        rows = torch.rand(3, 8) * (index + 1)
        return rows, smooth(rows)


net = nn.Linear(8, 8).to(device)
optimizer = torch.optim.Adam(net.parameters())
for rows, wanted in DataLoader(Rows(), batch_size=3):
    rows, wanted = rows.to(device), wanted.to(device)
    loss = F.mse_loss(smooth(net(rows)), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
