# source: dunbar12138/DSNeRF#93
# mechanism: rendered test views are brought to the CPU to be saved, and the test loss compares them with images that are on the GPU
# expect: raises
import torch
from torch import nn


def img2mse(x, y):
    return torch.mean((x - y) ** 2)  # RAISE


def mse2psnr(x):
    return -10.0 * torch.log10(x)


def get_rays(height, width, pose):
    j, i = torch.meshgrid(
        torch.linspace(0, 1, height, device=pose.device),
        torch.linspace(0, 1, width, device=pose.device),
        indexing="ij",
    )
    dirs = torch.stack([i - 0.5, 0.5 - j, -torch.ones_like(i)], dim=-1)
    rays_d = dirs @ pose[:3, :3].t()
    return pose[:3, 3].expand_as(rays_d), rays_d


class NeRF(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, 4))

    def forward(self, points):
        out = self.net(points)
        return out[..., :3].sigmoid(), out[..., 3].relu()


def render(network, rays_o, rays_d, samples=4):
    depth = torch.linspace(0.5, 2.0, samples, device=rays_o.device)
    points = rays_o[..., None, :] + rays_d[..., None, :] * depth[:, None]
    rgb, sigma = network(points)
    alpha = 1.0 - torch.exp(-sigma * 0.5)
    weights = alpha * torch.cumprod(torch.cat([torch.ones_like(alpha[..., :1]), 1 - alpha[..., :-1]], -1), -1)
    return (weights[..., None] * rgb).sum(-2), (weights * depth).sum(-1)


def render_path(network, poses, height, width):
    rgbs, depths = [], []
    for pose in poses:
        rgb, depth = render(network, *get_rays(height, width, pose))
        rgbs.append(rgb.cpu())
        depths.append(depth.cpu())
    return torch.stack(rgbs), torch.stack(depths)


def to8b(images):
    return (images.clamp(0, 1) * 255).to(torch.uint8)


def load_scene(count, size):
    gen = torch.Generator().manual_seed(0)
    poses = torch.eye(4).repeat(count, 1, 1)
    poses[:, :3, 3] = torch.rand(count, 3, generator=gen)
    return torch.rand(count, size, size, 3, generator=gen), poses


def train(steps=4, i_testset=2):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    images, poses = load_scene(5, 8)
    images, poses = images.to(device), poses.to(device)
    i_train, i_test = [0, 1, 2], [3, 4]
    network = NeRF().to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=5e-3)
    for i in range(1, steps + 1):
        view = i_train[i % len(i_train)]
        rgb, _ = render(network, *get_rays(8, 8, poses[view]))
        loss = img2mse(rgb, images[view])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % i_testset == 0:
            with torch.no_grad():
                rgbs, disps = render_path(network, poses[i_test], 8, 8)  # ALSO
            saved = to8b(rgbs)
            test_loss = img2mse(rgbs, images[i_test])  # ROOT
            print("test", i, tuple(saved.shape), round(mse2psnr(test_loss).item(), 3))


if __name__ == "__main__":
    torch.manual_seed(0)
    train()
