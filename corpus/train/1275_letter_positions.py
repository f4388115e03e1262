# source: Lightning-AI/pytorch-lightning#2984
# mechanism: criteria with class weights are kept in a plain Python list of a module, so no move reaches them
# expect: raises
import torch
from torch import nn


class LetterHead(nn.Module):
    def __init__(self, dim, alphabet):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.proj = nn.Linear(dim, alphabet)

    def forward(self, x):
        return self.proj(self.norm(x))


class HandwritingNet(nn.Module):
    def __init__(self, alphabet, positions, dim=16):
        super().__init__()
        self.conv = nn.Conv2d(1, dim, (4, 3), padding=(0, 1))
        self.pool = nn.AdaptiveAvgPool1d(positions)
        self.heads = nn.ModuleList([LetterHead(dim, alphabet) for _ in range(positions)])

    def forward(self, im):
        x = self.pool(torch.relu(self.conv(im)).squeeze(2)).transpose(1, 2)
        return torch.stack([head(x[:, t]) for t, head in enumerate(self.heads)], 1)


class PositionLoss(nn.Module):
    def __init__(self, letter_weights):
        super().__init__()
        self.criterions = []  # ROOT
        for weight in letter_weights:
            self.criterions.append(nn.CrossEntropyLoss(weight=weight))

    def forward(self, logits, target):
        parts = []
        for t, criterion in enumerate(self.criterions):
            parts.append(criterion(logits[:, t], target[:, t]))  # RAISE
        return torch.stack(parts)


class HandwritingTask(nn.Module):
    def __init__(self, letter_weights):
        super().__init__()
        positions, alphabet = letter_weights.shape
        self.net = HandwritingNet(alphabet, positions)
        self.criterion = PositionLoss(letter_weights)
        self.register_buffer("position_share", torch.full((positions,), 1.0 / positions))

    def training_step(self, batch):
        im, target = batch
        losses = self.criterion(self.net(im), target)
        logs = {f"loss{i}": v.item() for i, v in enumerate(losses)}
        return (losses * self.position_share).sum(), logs


class Trainer:
    def __init__(self, device, epochs=1):
        self.device, self.epochs = device, epochs

    def fit(self, task, loader):
        task.to(self.device)
        optimizer = torch.optim.Adam(task.parameters(), lr=1e-3)
        for _ in range(self.epochs):
            for batch in loader:
                loss, logs = task.training_step([b.to(self.device) for b in batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return logs


def inverse_frequency(targets, alphabet):
    rows = []
    for t in range(targets.shape[1]):
        counts = torch.bincount(targets[:, t], minlength=alphabet).float()
        rows.append(1.0 / counts.clamp(min=1))
    return torch.stack(rows)


def main():
    torch.manual_seed(0)
    images, targets = torch.randn(6, 1, 4, 12), torch.randint(0, 7, (6, 3))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    task = HandwritingTask(inverse_frequency(targets, 7))  # ALSO
    print(Trainer(device).fit(task, [(images[:3], targets[:3]), (images[3:], targets[3:])]))


if __name__ == "__main__":
    main()
