# source: kornia/tutorials#21
# mechanism: a chain of homographies that were estimated on the GPU starts with an identity that is made on the CPU
# expect: raises
import torch
from torch import nn
from torch.nn import functional as F


class HomographyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.delta = nn.Parameter(torch.zeros(2, 3))
        self.register_buffer("base", torch.eye(3))

    def forward(self):
        bottom = self.base[2:]
        return torch.cat([self.base[:2] + self.delta, bottom], dim=0)[None]


def normalized_grid(height, width, device):
    ys = torch.linspace(-1, 1, height, device=device)
    xs = torch.linspace(-1, 1, width, device=device)
    gy, gx = torch.meshgrid(ys, xs, indexing="ij")
    return torch.stack([gx, gy, torch.ones_like(gx)], dim=-1)


def warp(image, homography):
    height, width = image.shape[-2:]
    grid = normalized_grid(height, width, image.device)
    points = grid.view(1, -1, 3) @ homography.transpose(1, 2)
    points = points[..., :2] / points[..., 2:].clamp(min=1e-6)
    return F.grid_sample(image, points.view(1, height, width, 2), align_corners=True)


class ImageRegistrator:
    def __init__(self, device, iterations=4, lr=1e-2):
        self.device = device
        self.iterations = iterations
        self.lr = lr

    def register(self, source, target):
        model = HomographyModel().to(self.device)
        optimizer = torch.optim.Adam(model.parameters(), lr=self.lr)
        for _ in range(self.iterations):
            loss = F.l1_loss(warp(source, model()), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return model().detach(), loss.item()


def chain_to_last(models):
    chained = [torch.eye(3)[None]]  # ROOT
    for model in models[::-1]:
        chained.append(model @ chained[-1])  # RAISE
    return chained[::-1]


def blend(frames, homographies):
    total = torch.zeros_like(frames[0])
    weight = torch.zeros_like(frames[0])
    for frame, homography in zip(frames, homographies):
        total = total + warp(frame, homography)
        weight = weight + warp(torch.ones_like(frame), homography)
    return total / weight.clamp(min=1e-3)


def load_frames(count, device):
    gen = torch.Generator().manual_seed(1)
    scene = torch.rand(1, 3, 16, 24, generator=gen)
    return [scene[..., i * 2:i * 2 + 16].contiguous().to(device) for i in range(count)]


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    frames = load_frames(3, device)
    registrator = ImageRegistrator(device)
    models = []
    for source, target in zip(frames, frames[1:]):
        model, loss = registrator.register(source, target)
        models.append(model)
        print("registered", round(loss, 4))
    mosaic = blend(frames, chain_to_last(models))
    print(mosaic.shape, mosaic.mean().item())


if __name__ == "__main__":
    main()
