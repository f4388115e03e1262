# source: K-H-Ismail/Dilated-Convolution-with-Learnable-Spacings-PyTorch PR#8
# mechanism: [plain attribute tensor] constants made at the first forward for the device of that call and kept; the first call is a check on the CPU, the model moves afterwards
# phase: forward; failing op: aten::add
# expect: raises
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device("cuda", 0)


class ConstructKernel1d(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size, self.lim = size, None  # ALSO

    def init_tmp_variables(self, device):
        if self.lim is None:  # ALSO
            self.lim = torch.tensor([float(self.size)], device=device)  # ROOT

    def forward(self, weight, position):
        self.init_tmp_variables(weight.device)
        position = position + self.lim // 2  # RAISE  # ALSO
        near = torch.stack([1 - (i - position).abs() for i in range(self.size)])
        return (near.clamp(min=0) * weight).sum(-1).permute(1, 2, 0)

class Dcls1d(nn.Module):
    def __init__(self, inner, outer, count, size):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outer, inner, count))
        self.P = nn.Parameter(torch.randn(outer, inner, count))
        self.kernel = ConstructKernel1d(size)

    def forward(self, x):
        return F.conv1d(x, self.kernel(self.weight, self.P))

model = nn.Sequential(Dcls1d(1, 2, 3, 5), nn.ReLU(), nn.AdaptiveAvgPool1d(1))
with torch.no_grad():
    shape = model(torch.zeros(1, 1, 16)).shape
model.to(dev)
model(torch.randn(2, 1, 16, device=dev)).sum().backward()
