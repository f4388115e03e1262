# source: facebookresearch/pytorch3d#1441
# mechanism: rays of each camera are cached on the CPU, and a random choice among them is drawn on the renderer's GPU
# expect: raises
from typing import NamedTuple

import torch
from torch import nn


class RayBundle(NamedTuple):
    origins: torch.Tensor
    directions: torch.Tensor
    xys: torch.Tensor

    def to(self, device):
        return RayBundle(*(t.to(device) for t in self))


class Camera(NamedTuple):
    name: str
    position: torch.Tensor


class ProbabilisticSampler(nn.Module):
    """Gives rays through random pixels of a camera; the full grids can be cached."""

    def __init__(self, size, n_rays):
        super().__init__()
        self.size, self.n_rays = size, n_rays
        ys, xs = torch.meshgrid(torch.linspace(-1, 1, size), torch.linspace(-1, 1, size), indexing="ij")
        self.register_buffer("grid", torch.stack([xs, ys], dim=-1).view(-1, 2), persistent=False)
        self.cache = {}

    def full_bundle(self, camera):
        position = camera.position.to(self.grid.device)
        depth = torch.ones_like(self.grid[:, :1])
        directions = nn.functional.normalize(torch.cat([self.grid, depth], dim=-1), dim=-1)
        return RayBundle(position.expand(len(self.grid), -1), directions, self.grid)

    def precache(self, cameras):
        for camera in cameras:
            self.cache[camera.name] = self.full_bundle(camera).to("cpu")

    def forward(self, camera):
        device = self.grid.device
        if self.training and camera.name in self.cache:
            bundle = self.cache[camera.name]  # ALSO
        else:
            bundle = self.full_bundle(camera)
        if self.training:
            chosen = torch.randperm(bundle.xys.shape[0], device=device)[: self.n_rays]  # ROOT
            bundle = RayBundle(*(t[chosen] for t in bundle))  # RAISE # ALSO
        return bundle.to(device)


class RadianceField(nn.Module):
    def __init__(self, points=4, hidden=16):
        super().__init__()
        self.register_buffer("depths", torch.linspace(0.5, 2, points))
        self.net = nn.Sequential(nn.Linear(3, hidden), nn.Softplus(), nn.Linear(hidden, 4))

    def forward(self, bundle):
        points = bundle.origins[:, None] + bundle.directions[:, None] * self.depths[:, None]
        raw = self.net(points)
        alpha = 1 - torch.exp(-nn.functional.softplus(raw[..., 0]))
        through = torch.cumprod(1 - alpha + 1e-6, dim=1)
        weights = alpha * torch.cat([torch.ones_like(through[:, :1]), through[:, :-1]], dim=1)
        return (weights[..., None] * raw[..., 1:].sigmoid()).sum(1)


def sample_image(image, xys):
    grid = xys.view(1, 1, -1, 2)
    return nn.functional.grid_sample(image[None], grid, align_corners=True)[0, :, 0].T


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    cameras = [Camera(f"view{i}", torch.tensor([0.1 * i, 0.0, -1.0])) for i in range(3)]
    images = torch.rand(3, 3, 8, 8)
    sampler, field = ProbabilisticSampler(8, 10).to(device), RadianceField().to(device)
    sampler.precache(cameras)
    optimizer = torch.optim.Adam(field.parameters(), lr=1e-3)
    for camera, image in zip(cameras, images):
        bundle = sampler(camera)
        target = sample_image(image.to(device), bundle.xys)
        loss = (field(bundle) - target).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
