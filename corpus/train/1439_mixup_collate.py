# source: huggingface/pytorch-image-models#1222
# mechanism: the one-hot function of a mixup has 'cuda' as the default of its device, and a collate function calls it with labels on the CPU
# expect: raises
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


def one_hot(x, num_classes, on_value=1.0, off_value=0.0, device="cuda"):
    x = x.long().view(-1, 1)
    full = torch.full((x.size(0), num_classes), off_value, device=device)  # ROOT
    return full.scatter_(1, x, on_value)  # RAISE


def mixup_target(target, num_classes, lam=1.0, smoothing=0.0):
    off_value = smoothing / num_classes
    on_value = 1.0 - smoothing + off_value
    y1 = one_hot(target, num_classes, on_value, off_value)
    y2 = one_hot(target.flip(0), num_classes, on_value, off_value)
    return y1 * lam + y2 * (1.0 - lam)


class CollateMixup:
    def __init__(self, num_classes, alpha=0.8, smoothing=0.1):
        self.num_classes, self.smoothing = num_classes, smoothing
        self.beta = torch.distributions.Beta(alpha, alpha)

    def __call__(self, samples):
        images = torch.stack([s[0] for s in samples])
        target = torch.tensor([s[1] for s in samples])
        lam = float(self.beta.sample())
        images = images * lam + images.flip(0) * (1 - lam)
        return images, mixup_target(target, self.num_classes, lam, self.smoothing)


class Images(Dataset):
    def __init__(self, rows, num_classes):
        gen = torch.Generator().manual_seed(0)
        self.images = torch.rand(rows, 3, 8, 8, generator=gen)
        self.labels = torch.randint(0, num_classes, (rows,), generator=gen).tolist()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.images[i], self.labels[i]


class SoftTargetCrossEntropy(nn.Module):
    def forward(self, x, target):
        return torch.sum(-target * F.log_softmax(x, dim=-1), dim=-1).mean()


class Net(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, stride=2)
        self.fc = nn.Linear(6, num_classes)

    def forward(self, x):
        return self.fc(F.relu(self.conv(x)).mean((2, 3)))


def train_one_epoch(model, loader, criterion, optimizer, device):
    for images, target in loader:
        images, target = images.to(device), target.to(device)
        loss = criterion(model(images), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    classes = 5
    loader = DataLoader(Images(12, classes), batch_size=4, collate_fn=CollateMixup(classes))
    model = Net(classes).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    print(train_one_epoch(model, loader, SoftTargetCrossEntropy(), optimizer, device))


if __name__ == "__main__":
    main()
