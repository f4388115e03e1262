# source: kornia/kornia#2867
# mechanism: an augmentation module takes its default quantization tables from constants of the file, which its .to() does not move
# expect: raises
import math

import torch
from torch import nn

LUMA_TABLE = torch.tensor([[16.0, 11, 10, 16], [12, 12, 14, 19], [14, 13, 16, 24], [14, 17, 22, 29]])


def dct_matrix(n):
    k = torch.arange(n).float()
    basis = torch.cos(math.pi / n * (k[None] + 0.5) * k[:, None]) * math.sqrt(2.0 / n)
    basis[0] /= math.sqrt(2.0)
    return basis


def patchify(images, size):
    return images.unfold(2, size, size).unfold(3, size, size)


def unpatchify(patches):
    b, c, rows, cols, size, _ = patches.shape
    return patches.permute(0, 1, 2, 4, 3, 5).reshape(b, c, rows * size, cols * size)


def quality_to_scale(quality):
    return torch.where(quality < 50, 5000.0 / quality, 200.0 - 2 * quality) / 100.0


def quantize(coeffs, quality, table):
    scaled = table * quality_to_scale(quality).view(-1, 1, 1, 1, 1, 1)  # RAISE # ALSO
    scaled = scaled.clamp(1.0, 255.0)
    return (coeffs / scaled).round() * scaled


def jpeg_codec(images, quality, dct, table=None):
    if table is None:
        table = LUMA_TABLE  # ROOT
    patches = patchify(images * 255.0 - 128.0, table.shape[-1])
    coeffs = dct @ patches @ dct.t()
    restored = dct.t() @ quantize(coeffs, quality, table) @ dct
    return ((unpatchify(restored) + 128.0) / 255.0).clamp(0.0, 1.0)


class RandomJPEG(nn.Module):
    def __init__(self, quality=(20.0, 80.0), p=1.0):
        super().__init__()
        self.p = p
        self.register_buffer("quality", torch.tensor(quality))
        self.register_buffer("dct", dct_matrix(4), persistent=False)

    def generate_parameters(self, batch_size):
        low, high = self.quality
        return low + (high - low) * torch.rand(batch_size, device=self.quality.device)

    def forward(self, images):
        if torch.rand(()).item() > self.p:
            return images
        return jpeg_codec(images, self.generate_parameters(len(images)), self.dct)  # ALSO


class AugmentedClassifier(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.augment = RandomJPEG()
        self.net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(4, classes)

    def forward(self, images):
        if self.training:
            with torch.no_grad():
                images = self.augment(images)
        return self.head(self.net(images))


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = AugmentedClassifier().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(2):
        images = torch.rand(4, 1, 8, 8, device=device)
        labels = torch.randint(0, 3, (4,)).to(device)
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss %.3f" % loss.item())


if __name__ == "__main__":
    main()
