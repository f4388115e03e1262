# source: mtkresearch/FishLeg#16
# mechanism: the gradient hooks close over masks that were computed before the model went to the GPU
# expect: raises
from typing import Callable, Dict

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self, features=10, hidden=14, classes=3):
        super().__init__()
        self.body = nn.Linear(features, hidden)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


def zero_grad_hook(mask: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    def hook(grad: torch.Tensor) -> torch.Tensor:
        return grad * mask  # RAISE # ROOT

    return hook


class MagnitudePruner:
    def __init__(self, sparsity: float):
        self.sparsity = sparsity
        self.masks: Dict[str, torch.Tensor] = {}

    def score(self, weight: torch.Tensor) -> torch.Tensor:
        return weight.detach().abs()

    def threshold(self, scores: torch.Tensor) -> torch.Tensor:
        count = max(1, int(self.sparsity * scores.numel()))
        return scores.flatten().kthvalue(count).values

    def prune(self, model: nn.Module) -> None:
        for name, parameter in model.named_parameters():
            if parameter.dim() < 2:
                continue
            scores = self.score(parameter)
            mask = (scores > self.threshold(scores)).to(parameter.dtype)
            parameter.data.mul_(mask)
            self.masks[name] = mask

    def freeze(self, model: nn.Module) -> None:
        lookup = dict(model.named_parameters())
        for name, mask in self.masks.items():
            lookup[name].register_hook(zero_grad_hook(mask))  # ALSO


def density(model: nn.Module) -> float:
    weights = [p for p in model.parameters() if p.dim() > 1]
    return sum((w != 0).sum().item() for w in weights) / sum(w.numel() for w in weights)


def retrain(model, steps, device):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.CrossEntropyLoss()
    for _ in range(steps):
        x = torch.randn(12, 10, device=device)
        loss = criterion(model(x), x[:, :3].argmax(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def load_pretrained():
    torch.manual_seed(0)
    return Classifier()


def main():
    device = torch.device("cuda")
    model = load_pretrained()  # ALSO
    pruner = MagnitudePruner(sparsity=0.5)
    pruner.prune(model)  # ALSO
    model = model.to(device)
    pruner.freeze(model)
    print("density", density(model))
    print("loss", retrain(model, 4, device), "density", density(model))


if __name__ == "__main__":
    main()
