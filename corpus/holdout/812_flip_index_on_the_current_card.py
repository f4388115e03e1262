# source: pytorch/pytorch PR#2353 (review: 'This only works if your current device is the device you want to send the index to')
# mechanism: [index tensor] index that reverses the time axis is sent to the GPU with .cuda(), which is the current one; the sequence is on another card
# phase: forward; failing op: aten::index_select (cuda:1 self, cuda:0 index)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


d1 = torch.device("cuda", 1)
def reverse_dim(var, dim):
    index = torch.arange(var.size(dim) - 1, -1, -1)
    if var.is_cuda:
        index = index.cuda()  # ROOT
    return var.index_select(dim, index)  # RAISE  # ALSO

class BiScan(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fwd, self.bwd = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x):
        past = self.fwd(x).cumsum(1)
        future = reverse_dim(reverse_dim(self.bwd(x), 1).cumsum(1), 1)
        return past + future

for place in (dev, d1):
    BiScan(3).to(place)(torch.ones(2, 5, 3, device=place))
