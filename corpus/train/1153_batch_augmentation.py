# source: kornia/kornia#622
# mechanism: random parameters of an augmentation are drawn on the CPU; the functional moves one of the two to the images' device
# expect: raises
import torch
from torch import nn


def adjust_brightness(images, factors):
    return (images + factors.to(images.device).view(-1, 1, 1, 1)).clamp(0, 1)


def solarize(images, thresholds, additions):
    thresholds = thresholds.to(images.device).view(-1, 1, 1, 1)
    additions = additions.view(-1, 1, 1, 1)  # ROOT
    shifted = (images + additions).clamp(0, 1)  # RAISE # ALSO
    return torch.where(shifted < thresholds, shifted, 1.0 - shifted)


class Augmentation(nn.Module):
    def __init__(self, p=1.0):
        super().__init__()
        self.p = p

    def generate_parameters(self, batch_size):
        raise NotImplementedError

    def apply_transform(self, images, params):
        raise NotImplementedError

    def forward(self, images):
        applied = torch.rand(len(images)) < self.p
        params = self.generate_parameters(len(images))  # ALSO
        changed = self.apply_transform(images, params)  # ALSO
        return torch.where(applied.to(images.device).view(-1, 1, 1, 1), changed, images)


class RandomBrightness(Augmentation):
    def __init__(self, spread=0.2, p=1.0):
        super().__init__(p)
        self.spread = spread

    def generate_parameters(self, batch_size):
        return {"factors": (torch.rand(batch_size) * 2 - 1) * self.spread}

    def apply_transform(self, images, params):
        return adjust_brightness(images, params["factors"])


class RandomSolarize(Augmentation):
    def __init__(self, threshold=0.1, addition=0.1, p=1.0):
        super().__init__(p)
        self.threshold = threshold
        self.addition = addition

    def generate_parameters(self, batch_size):
        thresholds = 0.5 + (torch.rand(batch_size) * 2 - 1) * self.threshold
        additions = (torch.rand(batch_size) * 2 - 1) * self.addition
        return {"thresholds": thresholds, "additions": additions}

    def apply_transform(self, images, params):
        return solarize(images, params["thresholds"], params["additions"])  # ALSO


class Classifier(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
        self.head = nn.Linear(8, classes)

    def forward(self, images):
        return self.head(self.features(images).flatten(1))


def batches(count, size, device):
    for _ in range(count):
        yield torch.rand(size, 3, 16, 16).to(device), torch.randint(0, 4, (size,)).to(device)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    augment = nn.Sequential(RandomBrightness(), RandomSolarize(0.1, 0.1)).to(device)
    network = Classifier().to(device)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    for images, labels in batches(3, 4, device):
        with torch.no_grad():
            images = augment(images)
        loss = nn.functional.cross_entropy(network(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("loss", round(loss.item(), 4))


if __name__ == "__main__":
    main()
