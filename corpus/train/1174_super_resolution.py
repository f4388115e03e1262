# source: Lornatang/SRGAN-PyTorch#22
# mechanism: image statistics are a constant of the module that a perceptual loss subtracts from images on the GPU
# expect: raises
import torch
from torch import nn
from torch.nn import functional as F

IMAGE_STATS = torch.tensor([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]]).view(2, 1, 3, 1, 1)


def normalize(images):
    mean, std = IMAGE_STATS  # ROOT
    return (images - mean) / std  # RAISE # ALSO


class ResidualBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.act = nn.PReLU()

    def forward(self, x):
        return x + self.conv2(self.act(self.conv1(x)))


class Generator(nn.Module):
    def __init__(self, channels=8, blocks=2):
        super().__init__()
        self.head = nn.Conv2d(3, channels, 3, padding=1)
        self.body = nn.Sequential(*[ResidualBlock(channels) for _ in range(blocks)])
        self.tail = nn.Sequential(nn.Conv2d(channels, 12, 3, padding=1), nn.PixelShuffle(2), nn.Sigmoid())

    def forward(self, x):
        x = self.head(x)
        return self.tail(x + self.body(x))


class FeatureExtractor(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width * 2, 3, stride=2, padding=1)
        )
        for p in self.parameters():
            p.requires_grad_(False)

    def forward(self, x):
        return self.layers(x)


class ContentLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.extractor = FeatureExtractor().eval()

    def forward(self, source, target):
        source, target = normalize(source), normalize(target)
        return F.mse_loss(self.extractor(source), self.extractor(target))


class PairedPatches:
    def __init__(self, count, size, scale=2):
        gen = torch.Generator().manual_seed(7)
        self.high = torch.rand(count, 3, size, size, generator=gen)
        self.low = F.avg_pool2d(self.high, scale)

    def batches(self, size):
        for start in range(0, len(self.high), size):
            yield self.low[start:start + size], self.high[start:start + size]


def train_psnr(generator, data, optimizer, device):
    criterion = nn.MSELoss().to(device)
    for low, high in data.batches(2):
        loss = criterion(generator(low.to(device)), high.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("pixel", round(loss.item(), 5))


def train_gan(generator, data, optimizer, device):
    content_criterion = ContentLoss().to(device)
    for low, high in data.batches(2):
        high = high.to(device)
        sr = generator(low.to(device))
        content_loss = content_criterion(sr, high.detach())
        optimizer.zero_grad()
        content_loss.backward()
        optimizer.step()
        print("content", round(content_loss.item(), 5))


def main():
    torch.manual_seed(0)
    device = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    generator = Generator().to(device)
    optimizer = torch.optim.Adam(generator.parameters(), lr=1e-4)
    data = PairedPatches(4, 16)
    train_psnr(generator, data, optimizer, device)
    train_gan(generator, data, optimizer, device)


if __name__ == "__main__":
    main()
