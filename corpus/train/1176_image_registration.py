# source: Project-MONAI/MONAI#1841
# mechanism: a registration loss makes its smoothing kernel in the constructor and filters images on the GPU with it
# expect: raises
import torch
from torch import nn
from torch.nn import functional as F


def make_rectangular_kernel(size):
    return torch.ones(size)


def make_triangular_kernel(size):
    half = size // 2
    ramp = torch.arange(1, half + 2, dtype=torch.float32)
    return torch.cat([ramp, ramp[:-1].flip(0)])


KERNELS = {"rectangular": make_rectangular_kernel, "triangular": make_triangular_kernel}


def separable_filtering(x, kernel):
    size = len(kernel)
    for shape, padding in (((size, 1), (size // 2, 0)), ((1, size), (0, size // 2))):
        x = F.conv2d(x, kernel.view(1, 1, *shape), padding=padding)  # RAISE # ALSO
    return x


class LocalNormalizedCrossCorrelation(nn.Module):
    def __init__(self, kernel_size=3, kernel_type="rectangular", smooth_nr=0.0, smooth_dr=1e-5):
        super().__init__()
        self.kernel = KERNELS[kernel_type](kernel_size)
        self.kernel_vol = float(self.kernel.sum() ** 2)
        self.smooth_nr = smooth_nr
        self.smooth_dr = smooth_dr

    def forward(self, pred, target):
        kernel, kernel_vol = self.kernel, self.kernel_vol  # ROOT
        t_sum = separable_filtering(target, kernel)
        p_sum = separable_filtering(pred, kernel)
        t2_sum = separable_filtering(target ** 2, kernel)
        p2_sum = separable_filtering(pred ** 2, kernel)
        tp_sum = separable_filtering(target * pred, kernel)
        cross = tp_sum - p_sum * t_sum / kernel_vol
        t_var = (t2_sum - t_sum ** 2 / kernel_vol).clamp(min=0)
        p_var = (p2_sum - p_sum ** 2 / kernel_vol).clamp(min=0)
        ncc = (cross * cross + self.smooth_nr) / (t_var * p_var + self.smooth_dr)
        return -ncc.mean()


class BendingEnergy(nn.Module):
    def forward(self, ddf):
        dy = ddf[:, :, 1:] - ddf[:, :, :-1]
        dx = ddf[..., 1:] - ddf[..., :-1]
        return dy.pow(2).mean() + dx.pow(2).mean()


class Warp(nn.Module):
    def forward(self, image, ddf):
        batch, _, height, width = image.shape
        ys = torch.linspace(-1, 1, height, device=image.device)
        xs = torch.linspace(-1, 1, width, device=image.device)
        gy, gx = torch.meshgrid(ys, xs, indexing="ij")
        grid = torch.stack([gx, gy], dim=-1)[None] + ddf.permute(0, 2, 3, 1)
        return F.grid_sample(image, grid, align_corners=True)


class RegistrationNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(2, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, 2, 3, padding=1))

    def forward(self, moving, fixed):
        return 0.1 * torch.tanh(self.net(torch.cat([moving, fixed], dim=1)))


def pairs(count, size):
    gen = torch.Generator().manual_seed(4)
    for _ in range(count):
        fixed = torch.rand(2, 1, size, size, generator=gen)
        yield fixed.roll(1, dims=-1), fixed


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = RegistrationNet().to(device)
    warp = Warp().to(device)
    image_loss = LocalNormalizedCrossCorrelation(kernel_size=5, kernel_type="triangular")
    regularization = BendingEnergy()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for moving, fixed in pairs(3, 12):
        moving, fixed = moving.to(device), fixed.to(device)
        ddf = model(moving, fixed)
        loss = image_loss(warp(moving, ddf), fixed) + 0.5 * regularization(ddf)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("loss", round(loss.item(), 5))


if __name__ == "__main__":
    main()
