# source: dunbar12138/DSNeRF#3
# mechanism: the default device is the GPU, and a shuffling loader draws its order with a generator of its own on the CPU
# expect: raises
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class RayDataset(Dataset):
    def __init__(self, rays):
        self.rays = rays

    def __len__(self):
        return len(self.rays)

    def __getitem__(self, index):
        return self.rays[index]


class Embedder:
    def __init__(self, freqs):
        self.bands = 2.0 ** torch.arange(freqs)

    @property
    def out_dim(self):
        return 3 + 6 * len(self.bands)

    def __call__(self, x):
        angles = (x[..., None, :] * self.bands[:, None]).flatten(-2)
        return torch.cat([x, angles.sin(), angles.cos()], dim=-1)


class NeRF(nn.Module):
    def __init__(self, in_dim, width=16):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(in_dim, width), nn.ReLU(), nn.Linear(width, 4))

    def forward(self, x):
        return self.layers(x)


def get_rays(height, width, focal, pose):
    j, i = torch.meshgrid(torch.arange(height).float(), torch.arange(width).float(), indexing="ij")
    dirs = torch.stack([(i - width / 2) / focal, (height / 2 - j) / focal, -torch.ones_like(i)], dim=-1)
    rays_d = dirs @ pose[:3, :3].t()
    return pose[:3, 3].expand_as(rays_d), rays_d


def load_scene(count, size):
    poses = torch.eye(4).repeat(count, 1, 1)
    poses[:, :3, 3] = torch.rand(count, 3)
    images = torch.rand(count, size, size, 3)
    return images, poses


def ray_bank(images, poses, focal):
    rows = []
    for image, pose in zip(images, poses):
        rays_o, rays_d = get_rays(image.shape[0], image.shape[1], focal, pose)
        rows.append(torch.cat([rays_o, rays_d, image], dim=-1).view(-1, 9))
    return torch.cat(rows)


def render_rays(network, embed, rays_o, rays_d, samples=4):
    depth = torch.linspace(0.5, 2.0, samples)
    points = rays_o[:, None] + rays_d[:, None] * depth[:, None]
    raw = network(embed(points))
    alpha = 1 - torch.exp(-raw[..., 3].relu() * 0.5)
    through = torch.cumprod(torch.cat([torch.ones(len(alpha), 1), 1 - alpha[:, :-1]], dim=1), dim=1)
    return ((alpha * through)[..., None] * raw[..., :3].sigmoid()).sum(1)


def cycle(loader):
    while True:
        for batch in loader:  # RAISE
            yield batch


def train(args, device):
    images, poses = load_scene(2, args.size)
    rays = ray_bank(images, poses, focal=float(args.size))
    loader = DataLoader(RayDataset(rays), batch_size=args.n_rand, shuffle=True)  # ROOT
    embed = Embedder(args.multires)
    network = NeRF(embed.out_dim).to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=args.lr)
    batches = cycle(loader)
    for i in range(args.n_iters):
        batch = next(batches).to(device)
        rays_o, rays_d, target = batch.split(3, dim=1)
        loss = ((render_rays(network, embed, rays_o, rays_d) - target) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("iter", i, round(loss.item(), 4))


def config_parser():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=6)
    parser.add_argument("--n_rand", type=int, default=16)
    parser.add_argument("--multires", type=int, default=2)
    parser.add_argument("--n_iters", type=int, default=3)
    parser.add_argument("--lr", type=float, default=5e-3)
    return parser


if __name__ == "__main__":
    torch.manual_seed(0)
    main_device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.set_default_device(main_device)
    train(config_parser().parse_args([]), main_device)
