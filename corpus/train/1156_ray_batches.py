# source: nerfstudio-project/nerfstudio#1823
# mechanism: pixel indices that come from a mask on the GPU index images that are cached on the CPU
# expect: raises
import torch
from torch import nn


class SemanticFilter(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Conv2d(3, 1, 1)

    @torch.no_grad()
    def forward(self, images):
        logits = self.net(images.permute(0, 3, 1, 2))
        return (logits >= logits.mean()).permute(0, 2, 3, 1)


class CachedImages:
    def __init__(self, count, height, width):
        gen = torch.Generator().manual_seed(0)
        self.batch = {
            "image": torch.rand(count, height, width, 3, generator=gen),
            "depth": torch.rand(count, height, width, 1, generator=gen),
            "image_idx": torch.arange(count),
        }


class PixelSampler:
    def __init__(self, num_rays):
        self.num_rays = num_rays

    def sample_method(self, batch_size, height, width, mask=None):
        if mask is not None:
            candidates = torch.nonzero(mask[..., 0])  # ALSO
            chosen = torch.randint(0, len(candidates), (self.num_rays,))
            return candidates[chosen.to(candidates.device)]  # ALSO
        scale = torch.tensor([batch_size, height, width])
        return (torch.rand(self.num_rays, 3) * scale).long()

    def collate(self, batch, mask=None):
        count, height, width = batch["image"].shape[:3]
        indices = self.sample_method(count, height, width, mask)  # ALSO
        c, y, x = (i.flatten() for i in torch.split(indices, 1, dim=-1))  # ROOT
        collated = {key: value[c, y, x] for key, value in batch.items() if key != "image_idx"}  # RAISE
        collated["indices"] = torch.stack([batch["image_idx"][c], y, x], dim=-1)
        return collated


class DataManager:
    def __init__(self, cache, sampler, device, mask_model=None):
        self.cache = cache
        self.sampler = sampler
        self.device = device
        self.mask = None
        if mask_model is not None:
            self.mask = mask_model(cache.batch["image"].to(device))  # ALSO

    def next_train(self):
        rays = self.sampler.collate(self.cache.batch, self.mask)
        return {key: value.to(self.device) for key, value in rays.items()}


class RadianceField(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, 3), nn.Sigmoid())

    def forward(self, indices):
        return self.mlp(indices.float() / 8)


def train(manager, field, steps):
    optimizer = torch.optim.Adam(field.parameters(), lr=1e-2)
    for step in range(steps):
        rays = manager.next_train()
        loss = nn.functional.mse_loss(field(rays["indices"]), rays["image"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("step", step, round(loss.item(), 4))


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    cache = CachedImages(3, 8, 8)
    field = RadianceField().to(device)
    train(DataManager(cache, PixelSampler(16), device), field, 2)
    train(DataManager(cache, PixelSampler(16), device, SemanticFilter().to(device)), field, 2)


if __name__ == "__main__":
    main()
