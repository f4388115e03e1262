# source: kornia/kornia#3028
# mechanism: the parameter generator of an augmentation has a device of its own that stays the CPU, and the gradient that it makes is added to images on the GPU
# expect: raises
from typing import Dict

import torch
from torch import nn


class GaussianIlluminationGenerator:
    def __init__(self, gain=(0.05, 0.2), center=(0.2, 0.8), sigma=(0.2, 1.0)):
        self.gain, self.center, self.sigma = gain, center, sigma
        self.set_rng_device_and_dtype(torch.device("cpu"), torch.float32)

    def set_rng_device_and_dtype(self, device, dtype):
        self.device, self.dtype = device, dtype

    def _uniform(self, bounds, n):
        low, high = bounds
        return low + (high - low) * torch.rand(n, 1, device=self.device, dtype=self.dtype)

    def __call__(self, shape) -> Dict[str, torch.Tensor]:
        n, _, h, w = shape
        gain, sigma = self._uniform(self.gain, n), self._uniform(self.sigma, n)
        cy, cx = self._uniform(self.center, n), self._uniform(self.center, n)
        ys = torch.linspace(0, 1, h, device=self.device, dtype=self.dtype)
        xs = torch.linspace(0, 1, w, device=self.device, dtype=self.dtype)
        gy = torch.exp(-((ys - cy) ** 2) / (2 * sigma ** 2))
        gx = torch.exp(-((xs - cx) ** 2) / (2 * sigma ** 2))
        gradient = gain.view(n, 1, 1, 1) * (gy[:, None, :, None] * gx[:, None, None, :])
        return {"gradient": gradient, "gain": gain}


class AugmentationBase(nn.Module):
    def __init__(self, p=0.5):
        super().__init__()
        self.p = p
        self._param_generator = None

    def forward(self, images):
        params = self._param_generator(images.shape)  # ALSO
        params["apply"] = torch.rand(images.shape[0], device=images.device) < self.p
        transformed = self.apply_transform(images, params)
        return torch.where(params["apply"].view(-1, 1, 1, 1), transformed, images)

    def apply_transform(self, images, params):
        raise NotImplementedError


class RandomGaussianIllumination(AugmentationBase):
    def __init__(self, gain=(0.05, 0.2), p=0.5):
        super().__init__(p)
        self._param_generator = GaussianIlluminationGenerator(gain)

    def apply_transform(self, images, params):
        return images.add(params["gradient"]).clamp(0, 1)  # RAISE # ROOT


class RandomHorizontalFlip(AugmentationBase):
    def __init__(self, p=0.5):
        super().__init__(p)
        self._param_generator = lambda shape: {}

    def apply_transform(self, images, params):
        return images.flip(-1)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Conv2d(3, 6, 3, stride=2)
        self.score = nn.Conv2d(6, 1, 1)

    def forward(self, x):
        return self.score(torch.relu(self.body(x))).flatten(1).amax(1)


def training_batches(n, device):
    for _ in range(n):
        images = torch.rand(3, 3, 10, 10)
        yield images.to(device), (images.mean((1, 2, 3)) > 0.5).float().to(device)


def main():
    torch.manual_seed(1)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    augment = nn.Sequential(RandomHorizontalFlip(), RandomGaussianIllumination(p=1.0)).to(device)
    model = Detector().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for images, targets in training_batches(3, device):
        loss = nn.functional.binary_cross_entropy_with_logits(model(augment(images)), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss %.3f" % loss.item())


if __name__ == "__main__":
    main()
