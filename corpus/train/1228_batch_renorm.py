# source: ContinualAI/avalanche PR#1188
# mechanism: a limit that starts as a number grows until min() picks its cap, and the cap is a host tensor
# expect: raises
from typing import Iterator, List, Tuple

import torch
from torch import nn


class BatchRenorm1d(nn.Module):
    def __init__(self, num_features: int, momentum: float = 0.1, eps: float = 1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_std", torch.ones(num_features))
        self.momentum, self.eps = momentum, eps
        self.r_max = 1.0
        self.max_r_max = 3.0
        self.inc_step = 1e-3

    def _correction(self, std: torch.Tensor) -> torch.Tensor:
        r_max = self.r_max  # ROOT
        return (std.detach() / self.running_std).clamp(1 / r_max, r_max)  # RAISE # ALSO

    def _grow_limits(self, batch_size: int) -> None:
        self.r_max = min(self.r_max + self.inc_step * batch_size, self.max_r_max)

    def _update_running(self, mean: torch.Tensor, std: torch.Tensor) -> None:
        with torch.no_grad():
            self.running_mean.lerp_(mean, self.momentum)
            self.running_std.lerp_(std, self.momentum)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return self.weight * (x - self.running_mean) / self.running_std + self.bias
        mean = x.mean(0)
        std = x.var(0, unbiased=False).add(self.eps).sqrt()
        r = self._correction(std)
        d = ((mean.detach() - self.running_mean) / self.running_std).clamp(-1.0, 1.0)
        self._update_running(mean.detach(), std.detach())
        self._grow_limits(x.shape[0])
        return self.weight * ((x - mean) / std * r + d) + self.bias


def change_brn_pars(model: nn.Module, momentum: float, inc_step: float, max_r_max: float) -> None:
    for layer in model.modules():
        if isinstance(layer, BatchRenorm1d):
            layer.momentum = momentum
            layer.max_r_max = torch.tensor([max_r_max])  # ALSO
            layer.inc_step = inc_step


class SlowLearner(nn.Module):
    def __init__(self, in_dim: int, hidden: int, n_classes: int):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(in_dim, hidden), BatchRenorm1d(hidden), nn.ReLU())
        self.output = nn.Linear(hidden, n_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.output(self.features(x))


class Experience:
    def __init__(self, index: int, classes: List[int], n: int, dim: int):
        gen = torch.Generator().manual_seed(index)
        self.index = index
        self.y = torch.tensor(classes)[torch.randint(0, len(classes), (n,), generator=gen)]
        self.x = torch.randn(n, dim, generator=gen) + self.y[:, None] * 0.5

    def minibatches(self, size: int) -> Iterator[Tuple[torch.Tensor, torch.Tensor]]:
        yield from zip(self.x.split(size), self.y.split(size))


class AR1:
    def __init__(self, model: SlowLearner, device: torch.device, lr: float, mb_size: int, max_r_max: float = 1.2):
        self.model, self.device, self.lr = model.to(device), device, lr
        self.mb_size, self.max_r_max = mb_size, max_r_max

    def train(self, experience: Experience, epochs: int = 1) -> float:
        if experience.index > 0:
            change_brn_pars(self.model, momentum=0.05, inc_step=4e-3, max_r_max=self.max_r_max)
        self.model.train()
        optimizer = torch.optim.SGD(self.model.parameters(), lr=self.lr)
        loss = torch.zeros(())
        for _ in range(epochs):
            for x, y in experience.minibatches(self.mb_size):
                loss = nn.functional.cross_entropy(self.model(x.to(self.device)), y.to(self.device))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return loss.item()

    @torch.no_grad()
    def eval(self, stream: List[Experience]) -> List[float]:
        self.model.eval()
        return [(self.model(e.x.to(self.device)).argmax(1).cpu() == e.y).float().mean().item() for e in stream]


def main() -> None:
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    stream = [Experience(i, [2 * i, 2 * i + 1], n=64, dim=6) for i in range(3)]
    strategy = AR1(SlowLearner(6, 16, 6), device, lr=0.05, mb_size=16)
    for experience in stream:
        print(experience.index, strategy.train(experience), strategy.eval(stream))


if __name__ == "__main__":
    main()
