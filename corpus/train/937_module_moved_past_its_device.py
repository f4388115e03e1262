# source: chaofengc/IQA-PyTorch#63, fix 08f8850
# mechanism: [plain attribute device] wrapper stores the device it was built for and sends the input there; Module.to() moves the network, not the stored device
# phase: forward; failing op: aten::conv2d ('Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same')
# expect: raises
# root: InferenceModel.__init__: self.device = device (fix: a to() that also updates self.device)
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


class Metric(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.device = torch.device(device)  # ROOT
        self.net = nn.Conv2d(3, 4, 3).to(self.device)

    def forward(self, img):
        return self.net(img.to(self.device)).mean()  # RAISE  # ALSO

metric = Metric("cpu").to(dev)
metric(torch.rand(1, 3, 8, 8, device=dev))
