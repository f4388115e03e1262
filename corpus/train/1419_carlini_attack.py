# source: Harry24k/CW-pytorch#3
# mechanism: one-hot labels are rows of an identity on the CPU that are taken with labels on the GPU and moved afterwards
# expect: raises
import torch
from torch import nn


class SmallCNN(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.fc = nn.Linear(4 * 6 * 6, classes)

    def forward(self, x):
        return self.fc(torch.relu(self.conv(x)).flatten(1))


class Attack:
    def __init__(self, model):
        self.model = model
        self.device = next(model.parameters()).device

    def __call__(self, images, labels):
        was_training = self.model.training
        self.model.eval()
        out = self.run(images.to(self.device), labels.to(self.device))
        self.model.train(was_training)
        return out


class CarliniWagner(Attack):
    def __init__(self, model, c=1.0, kappa=0.0, steps=5, lr=0.05, targeted=False):
        super().__init__(model)
        self.c, self.kappa = c, kappa
        self.steps, self.lr, self.targeted = steps, lr, targeted

    def margin(self, images, labels):
        outputs = self.model(images)
        one_hot = torch.eye(outputs.shape[1])[labels].to(self.device)  # RAISE # ROOT
        other = ((1 - one_hot) * outputs - one_hot * 1e4).max(dim=1).values
        real = (one_hot * outputs).sum(dim=1)
        gap = other - real if self.targeted else real - other
        return torch.clamp(gap, min=-self.kappa)

    def run(self, images, labels):
        w = torch.zeros_like(images, requires_grad=True)
        optimizer = torch.optim.Adam([w], lr=self.lr)
        best = images.clone()
        best_dist = torch.full((len(images),), float("inf"), device=self.device)
        for _ in range(self.steps):
            adv = 0.5 * (torch.tanh(w) + 1)
            dist = (adv - images).flatten(1).pow(2).sum(1)
            loss = dist.sum() + self.c * self.margin(adv, labels).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                fooled = self.model(adv).argmax(1) != labels
                better = fooled & (dist < best_dist)
                best[better] = adv[better]
                best_dist = torch.where(better, dist, best_dist)
        return best.detach()


def robust_accuracy(model, attack, loader, device):
    hits = total = 0
    for images, labels in loader:
        adv = attack(images, labels)
        pred = model(adv).argmax(1)
        hits += (pred == labels.to(device)).sum().item()
        total += len(labels)
    return hits / total


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = SmallCNN().to(device)
    loader = [(torch.rand(3, 1, 6, 6), torch.randint(0, 5, (3,))) for _ in range(2)]
    print("robust accuracy", robust_accuracy(model, CarliniWagner(model), loader, device))
