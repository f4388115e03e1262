# source: tianyu0207/RTFM#47, fix PR#74 ('setting default cuda type to cuda breaks a lot of things, especially in Adam and dataloader')
# mechanism: [generator device] process-wide CUDA default makes the shuffling sampler draw its permutation on CUDA, with the CPU generator it made itself
# phase: data loading; failing op: aten::randperm ('Expected a 'cuda' device type for generator but found 'cpu'')
# expect: raises
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

dev = torch.device("cuda", 0)


class Clips(Dataset):
    def __init__(self, n, abnormal):
        self.feats, self.abnormal = np.random.randn(n, 4).astype(np.float32), abnormal

    def __len__(self):
        return len(self.feats)

    def __getitem__(self, i):
        return self.feats[i], np.float32(self.abnormal)

def train(normal, abnormal, model, opt):
    x0, y0 = next(normal)  # RAISE
    x1, y1 = next(abnormal)
    x, y = torch.cat([x0, x1]).to(dev), torch.cat([y0, y1]).to(dev)
    nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y).backward()
    opt.step()

torch.set_default_device(dev)  # ROOT
model = nn.Linear(4, 1).to(dev)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
loaders = [DataLoader(Clips(6, flag), batch_size=2, shuffle=True) for flag in (0, 1)]  # ALSO
train(iter(loaders[0]), iter(loaders[1]), model, opt)
