# source: NVIDIA/waveglow, issues about .cuda() overrides
# mechanism: a model overrides cuda() with the parts that it had then, and does not call the one of its base class
# phase: forward; aten::linear
# expect: raises
import torch
from torch import nn


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(4, 8)
        self.decoder = nn.Linear(8, 4)
        self.auxiliary = nn.Linear(8, 1)

    def cuda(self, device=None):
        self.encoder.cuda(device)  # ALSO
        self.decoder.cuda(device)  # ROOT
        return self  # ALSO

    def forward(self, x):
        code = self.encoder(x)
        return self.decoder(code), self.auxiliary(code)  # RAISE


net = Segmenter().cuda()
net(torch.rand(2, 4).cuda())
