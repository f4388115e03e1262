# source: syuu1987/geekTime-semantic-segmentation#1
# mechanism: a block makes its batch norm in the first forward, after the network has been moved, so the layer stays on the CPU
# expect: raises
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class ShapesDataset(Dataset):
    def __init__(self, count, size):
        gen = torch.Generator().manual_seed(3)
        self.images = torch.rand(count, 3, size, size, generator=gen)
        self.masks = (self.images.mean(1) > 0.5).long()

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index], self.masks[index]


class ConvBlock(nn.Module):
    def __init__(self, in_channels, features):
        super().__init__()
        self.features = features
        self.conv = nn.Conv2d(in_channels, features, 3, padding=1)
        self.norm = None  # ROOT

    def forward(self, x):
        x = self.conv(x)
        if self.norm is None:
            self.norm = nn.BatchNorm2d(self.features)  # ALSO
        return F.relu(self.norm(x))  # RAISE


class TinyUNet(nn.Module):
    def __init__(self, classes=2, width=8):
        super().__init__()
        self.down = ConvBlock(3, width)
        self.bottom = ConvBlock(width, width * 2)
        self.up = nn.ConvTranspose2d(width * 2, width, 2, stride=2)
        self.merge = ConvBlock(width * 2, width)
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        skip = self.down(x)
        x = self.bottom(F.max_pool2d(skip, 2))
        x = torch.cat([self.up(x), skip], dim=1)
        return self.head(self.merge(x))


def pixel_accuracy(logits, target):
    return (logits.argmax(1) == target).float().mean().item()


def train_one_epoch(network, loader, optimizer, device):
    network.train()
    history = []
    for images, masks in loader:
        images, masks = images.to(device), masks.to(device)
        logits = network(images)
        loss = F.cross_entropy(logits, masks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append((loss.item(), pixel_accuracy(logits, masks)))
    return history


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    network = TinyUNet().to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    loader = DataLoader(ShapesDataset(8, 16), batch_size=4)
    for epoch in range(2):
        for loss, accuracy in train_one_epoch(network, loader, optimizer, device):
            print(f"epoch {epoch} loss {loss:.4f} acc {accuracy:.3f}")


if __name__ == "__main__":
    main()
