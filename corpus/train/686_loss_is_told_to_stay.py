# source: hkzhang-git/HiNAS PR#8, issue #3 (sr_compnet.py builds the SSIM loss with cuda=False)
# mechanism: [wrong flag from the caller] a loss puts its kernel on the GPU only if its flag says so; the network that owns the loss passes False
# phase: loss; failing op: aten::conv2d
# expect: raises
import torch
import torch.nn as nn
import torch.nn.functional as F


class ContrastLoss(nn.Module):
    def __init__(self, radius, gpu=True):
        super().__init__()
        taps = torch.exp(-torch.arange(-radius, radius + 1.0) ** 2 / (2 * radius))
        kernel = torch.outer(taps, taps)[None, None] / taps.sum() ** 2
        self.kernel = kernel.cuda() if gpu else kernel  # ALSO
        self.radius = radius

    def local(self, img):
        return F.conv2d(img, self.kernel, padding=self.radius)  # RAISE  # ALSO

    def forward(self, pred, ref):
        var_p = self.local(pred * pred) - self.local(pred) ** 2
        var_r = self.local(ref * ref) - self.local(ref) ** 2
        return (var_p - var_r).abs().mean()


class ThermalUpscaler(nn.Module):
    def __init__(self, width=8, scale=2):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, scale ** 2, 3, padding=1))
        self.shuffle = nn.PixelShuffle(scale)
        self.terms = nn.ModuleDict({
            "pixel": nn.L1Loss(),
            "contrast": ContrastLoss(3, gpu=False),  # ROOT
        })

    def forward(self, small, large):
        pred = self.shuffle(self.body(small))
        return pred, {name: term(pred, large) for name, term in self.terms.items()}


model = ThermalUpscaler().cuda()
small, large = torch.rand(2, 1, 12, 12).cuda(), torch.rand(2, 1, 24, 24).cuda()
pred, losses = model(small, large)
sum(losses.values()).backward()
